"""Findings and levers to candidate moves, best first; plan files."""
