"""What was built: its record, the proof that it is what it is called, its modules, its removal."""
