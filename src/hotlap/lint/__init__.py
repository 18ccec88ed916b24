"""The causes that source alone shows. Nothing of the user's is imported or run; torch is not needed."""
