"""Trains nothing and never imports torch."""

import sys

print("torch" in sys.modules, sys.argv)
with open("losses.txt", "w") as out:
    out.write((0.5).hex())
