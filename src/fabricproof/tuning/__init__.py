"""Which algorithm a collective takes: what can be forced, whether it loses, and the mending.

Pure but for reading its own data files: tables in, decisions and the text of tuning files out.
"""
