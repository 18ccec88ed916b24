"""What a proof stands for, as the baseline of a check: the commit that it was made on, and the plan that it proved."""

from __future__ import annotations

import json
from pathlib import Path

from hotlap.lap.revision import Against, Revision, find_revision
from hotlap.records.codec import decode
from hotlap.records.errors import EXIT_USAGE, HotlapError, RecordError
from hotlap.records.seed_proof import SeedProof

__all__ = ["read_proved"]

AGAIN = "`hotlap prove --plan fast.yaml --json FILE -- …`, in the script's git repository, writes one that can be used."


def read_proved(path: Path) -> Against:
    """The baseline that a ``proof.json`` of ``hotlap prove`` names.

    HotlapError (usage): no such file, another document, a proof that proved nothing or that names no commit, a commit
    that is not in this repository.
    """
    proof = _read(path)
    if proof.verdict != "proved":
        raise HotlapError(f"{path} is no baseline: it is {proof.verdict}.", AGAIN, EXIT_USAGE)
    if proof.commit is None:
        raise HotlapError(f"{path} does not say on which commit it was made.", AGAIN, EXIT_USAGE)
    found = find_revision(proof.commit)
    name = f"what {path.name} proved ({proof.commit[:12]} with its plan)"
    notes = []
    if proof.changed:
        files = ", ".join(proof.changed[:3]) + (", …" if len(proof.changed) > 3 else "")
        notes.append(f"The proof was made with changes that its commit does not hold: {files}.")
    return Against(Revision(name, found.commit, found.changed), proof.plan, notes)


def _read(path: Path) -> SeedProof:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as err:
        raise HotlapError(f"Cannot read the proof {path}: {err.strerror}.", AGAIN, EXIT_USAGE) from err
    except ValueError as err:  # no UTF-8, no JSON
        raise HotlapError(f"{path} is not JSON: {err}.", AGAIN, EXIT_USAGE) from err
    if not isinstance(data, dict) or data.get("schema") != SeedProof.schema:
        schema = data.get("schema") if isinstance(data, dict) else None
        what = f"{path} is no proof of `hotlap prove`: its schema is {schema!r}, not {SeedProof.schema!r}."
        raise HotlapError(what, AGAIN, EXIT_USAGE)
    try:
        found: SeedProof = decode(SeedProof, data, "$")
    except RecordError as err:
        raise HotlapError(f"{path}: {err.what}", err.hint or AGAIN, EXIT_USAGE) from err
    return found
