"""Speaker verification in the manner of the VoxCeleb trainer (Chung et al. 2020, arXiv:2003.11982)."""
