"""What this computer is and can do."""
