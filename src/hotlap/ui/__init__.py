"""A local page over the runs folder: it reads what lies there, for one reader on this machine, and changes nothing."""
