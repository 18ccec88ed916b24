"""Telling recorded speech from made speech, on ASVspoof-like sets (Todisco et al. 2019, arXiv:1904.05441)."""
