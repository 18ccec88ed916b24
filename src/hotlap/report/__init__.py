"""What people read: terminal and HTML. Only units.py rounds."""
