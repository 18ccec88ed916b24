"""One rule per file: ``CAUSES`` it may name, and ``find(script, training)``. Found by itself, no list to edit.

A rule speaks only where it is nearly always right: what it cannot see, it takes for well.
"""
