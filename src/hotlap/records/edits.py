"""Source edits as data: what a lever would write into the user's file. Applied by patch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

__all__ = ["Edit"]


@dataclass(frozen=True)
class Edit:
    """One change of source at ``file:line``, on the statement there.

    ``kind``:

    - ``set_keyword``: ``keywords`` of the call whose name ends in ``target`` (``optimizer``: the call that makes the
      torch optimizer used here; ``autocast``: also the call that made what the ``with`` here enters).
    - ``wrap_with``: ``code`` (``with …:``) around the model's call. ``target``: ``forward``, on this line;
      ``forwards``, wherever the file calls the same model.
    - ``replace_call``: ``code`` in place of a call, which it may name as ``{call}`` (its text), ``{function}`` and
      ``{arguments}``. ``target``: ``forward``, ``forwards``, ``readers`` (every call of a well-known file reader in
      the file), or the call's name (``torch.save``).
    - ``replace_iterable``: ``code`` in place of what a ``for`` goes over (``{iterable}``); ``target`` ``loop``.
    - ``replace_value``: ``code`` in place of what is added to ``target`` (``target += {value}``).
    - ``insert_before``: ``code`` once, before the outermost loop that the line is in.
    - ``insert_after``: ``code`` after the statement; with ``target`` ``model`` after the models called here are made,
      ``model:Conv`` only for those whose class shows the word.
    - ``decorate``: ``code`` (``@…``) on the function around the line, if that function does not train.
    - ``remove``: the statement (or the ``with``) that calls ``target``.
    - ``flip_batches``: the mirroring of single samples (``if random.random() < P: x = x.flip(-1)`` at the end of a data
      set's ``__getitem__``) becomes one of whole batches in the loop that trains on them.
    - ``wrap_dataset``: ``code`` in place of the data set (``{dataset}``) that the ``DataLoader`` made here is given,
      where it has no workers. ``keywords``: ``num_workers`` as the run had it. ``advice``: what else to do.
    - ``advice``: text only, a person has to do it.

    ``{module}`` in ``code`` is the model's name. A function of :mod:`hotlap.patch.helpers` that ``code`` calls is
    written into the file.
    """

    kind: str
    file: str
    line: int
    target: str = ""
    code: str = ""
    keywords: dict[str, Any] = field(default_factory=dict)
    advice: str = ""
