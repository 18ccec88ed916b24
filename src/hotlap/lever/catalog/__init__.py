"""One lever per file; found by :mod:`hotlap.lever.registry`, no list to edit."""
