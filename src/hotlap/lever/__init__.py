"""Levers: optimisations as plug-ins, one file each under catalog/. They import records and torch, no other room."""
