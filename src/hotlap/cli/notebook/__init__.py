"""``%load_ext hotlap``: the command line inside a notebook's cells."""
