"""Configuration files as users of these trainings have them: YAML, and JSON ``.conf`` with "True" and "False"."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import yaml

from hotlap_workloads.errors import SettingsError

__all__ = ["Translate", "Values", "left_out", "read_config"]

Values = dict[str, object]
Translate = Callable[[Values], Values]


def read_config(path: Path, aliases: Mapping[str, str], translate: Translate | None = None) -> Values:
    """The file's values by our names.

    Nested sections become dotted keys (``optim_config.base_lr``); ``translate`` mends values that mean something else
    in a published training, and ``aliases`` maps what it calls a setting to our name. Keys that are in neither stay as
    they are: whoever sets them says so.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as err:
        raise SettingsError(f"Cannot read the configuration {path}: {err.strerror}.") from err
    except UnicodeDecodeError as err:
        raise SettingsError(f"{path} is no UTF-8 text: {err.reason} at byte {err.start}.", "Save it as UTF-8.") from err
    try:
        loaded = json.loads(text) if path.suffix in (".conf", ".json") else yaml.safe_load(text)
    except (json.JSONDecodeError, yaml.YAMLError) as err:
        raise SettingsError(f"{path} is not valid: {' '.join(str(err).split())}.") from err
    if loaded is None:
        return {}
    if not isinstance(loaded, dict):
        raise SettingsError(f"{path} holds a {type(loaded).__name__}, not settings by name.")
    values = _flat(loaded, "")
    out: Values = {}
    for key, value in (translate(values) if translate else values).items():
        name = aliases.get(key, key)
        if name in out:
            raise SettingsError(f"{path}: {key!r} and another key both set {name!r}.", "Keep one.")
        out[name] = value
    return out


def left_out(values: Values, ignored: Mapping[str, str], say: Callable[[str], None]) -> Values:
    """The values without those keys that nothing here answers to; ``say`` is told which, and why."""
    for key in [key for key in values if key in ignored]:
        say(f"{key}={values[key]} is left out: {ignored[key]}.")
    return {key: value for key, value in values.items() if key not in ignored}


def _flat(section: Mapping[object, object], prefix: str) -> Values:
    out: Values = {}
    for key, value in section.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            out.update(_flat(value, f"{name}."))
        else:
            out[name] = value
    return out
