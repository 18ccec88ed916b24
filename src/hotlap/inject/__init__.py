"""The door into the user's process."""
