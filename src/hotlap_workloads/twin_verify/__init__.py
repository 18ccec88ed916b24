"""Verification of identical twins by dual cross-attention (DCAL: Zhu et al., CVPR 2022, arXiv:2205.02151)."""
