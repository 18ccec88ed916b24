"""Trials to a verdict. Pure: no files, no clock, no torch."""
