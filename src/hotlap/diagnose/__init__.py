"""Timeline to findings. Pure: no files, no clock, no torch."""
