"""What every room needs: errors and exit statuses, units, measurements, records, which build."""
