"""The documents that stages hand to each other, and nothing else. Standard library only."""
