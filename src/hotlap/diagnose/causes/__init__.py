"""One file per cause: its id in ``CAUSE``, and ``find(view)`` giving the finding or None."""
