"""Functions by which trainers of libraries (Transformers, Lightning, Accelerate) save and log, as a stack names them.

The probe keeps their frames in a timeline, however far in what they call lies; the diagnosis goes by them.
"""

from __future__ import annotations

import re

__all__ = ["LOGS", "SAVES"]

SAVES = re.compile(
    r"^_*save_(?:\w+_)?(?:checkpoint|pretrained|state|model)$|^_*(?:rotate|sort|remove|link|dump)_checkpoints?$"
)
"""They save and tidy checkpoints: what they call in turn (a copy, a json file, a folder removed) does not say so."""
LOGS = re.compile(r"^_*(?:maybe_log_save_evaluate|log_(?:metrics|dict)|on_log|update_train_(?:step|epoch)_metrics)$")
