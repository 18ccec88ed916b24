"""Detection of tiny objects by DETR (Carion et al. 2020, arXiv:2005.12872) with a smaller stride."""
