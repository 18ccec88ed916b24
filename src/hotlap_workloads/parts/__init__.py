"""Building blocks that more than one training uses. Each file stands alone and may be copied."""
