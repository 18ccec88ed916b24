"""Face recognition distilled from a large network into a small one: AdaDistill (Boutros et al., ECCV 2024)."""
