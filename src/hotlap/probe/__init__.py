"""One file per thing watched in the user's process. Standard library and torch only; knows nothing of levers."""
