"""The unattended run: one at a time, red confirmed elsewhere, told only on a change."""
