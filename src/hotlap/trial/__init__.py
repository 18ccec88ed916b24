"""Runs the user's command with a plan for a measured window, in a sandbox, two arms alternating."""
