import atexit as _atexit
import contextlib as _contextlib
import copy as _copy
import os as _os
import sys as _sys
import threading as _threading
import time as _time
import torch
from typing import Any


_changed = _threading.Condition()
_waiting: Any = {}
_writers: Any = []
_failed: Any = []
_spare: Any = {}
_PLAIN = {
    "builtins.NoneType", "builtins.bool", "builtins.int", "builtins.float", "builtins.complex", "builtins.str",
    "builtins.bytes", "builtins.bytearray", "pathlib.PosixPath", "torch.dtype", "torch.device", "torch.Size",
}  # fmt: skip
_HOLDING = {
    "builtins.dict", "builtins.list", "builtins.tuple", "builtins.set", "builtins.frozenset",
    "collections.OrderedDict", "argparse.Namespace",
}  # fmt: skip


def save_later(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Like torch.save, but only copies the state and returns: a thread writes it, under another name first.

    Of saves to one path that come faster than that, the newest is written, once a second at most. Raises what went
    wrong with an earlier one; where no save follows, the script ends with status 120. Python waits for the thread at
    exit. What is more than tensors, arrays, numbers and text
    in dicts, lists and the like, and what cannot be copied, is written before this returns.
    """
    if _failed:
        raise _failed.pop()
    name = _os.path.realpath(f) if isinstance(f, (str, _os.PathLike)) else None  # behind a link: the link stays
    if name is None or (_os.path.exists(name) and not (_os.path.isfile(name) and _os.stat(name).st_nlink == 1)):
        torch.save(obj, f, *args, **kwargs)  # a stream, a device, a file of two names
        return
    try:
        plain = _is_plain(obj)
        kept = _copied(obj, _spare.pop("state", None)) if plain else None
    except Exception:  # no room for a copy beside the training, or a tensor with a graph behind it
        plain = False
    if not plain:
        for writer in list(_writers):  # an older state must not come after this one
            writer.join()
        torch.save(obj, f, *args, **kwargs)
        return
    cuda: Any = torch.cuda
    # the copies may be made on streams that the thread's own do not wait for
    devices = {t.device.index for t in _tensors(kept) if t.is_cuda}
    devices |= {cuda.current_device()} if cuda.is_initialized() else set()
    made = [cuda.current_stream(device).record_event() for device in devices]
    with _changed:
        _changed.wait_for(lambda: name in _waiting or not _waiting)
        if name in _waiting:
            _keep_spare(_waiting[name][0])
        _waiting[name] = (kept, made, args, kwargs)
        if not _writers:
            _writers.append(_threading.Thread(target=_write_all))
            _writers[0].start()


def _is_plain(value: Any) -> bool:
    """Whether a deep copy makes the same file: one may drop what a class of the script's own holds."""
    kind = type(value)
    name = f"{kind.__module__}.{kind.__qualname__}"
    if name in _HOLDING:
        inside = [*value, *value.values()] if isinstance(value, dict) else [] if hasattr(value, "__dict__") else value
        return all(map(_is_plain, [*inside, *getattr(value, "__dict__", {}).values()]))
    if kind is torch.Tensor or kind is torch.nn.Parameter:
        return not vars(value)
    if kind.__module__ == "numpy":  # an array or a number
        return not hasattr(value, "__dict__") and not getattr(getattr(value, "dtype", None), "hasobject", True)
    return name in _PLAIN


def _copied(state: Any, spare: Any) -> Any:
    """A deep copy, in the memory of one that is written where all fits: fresh memory costs more than the copying."""
    now, old = _tensors(state), _tensors(spare)
    whole = {t.untyped_storage().data_ptr() for t in now if t.nbytes == t.untyped_storage().nbytes() > 0}
    if len(whole) == len(now) and [_layout(t) for t in now] == [_layout(t) for t in old]:
        return _copy.deepcopy(state, {id(t): place.copy_(t) for t, place in zip(now, old, strict=True)})
    return _copy.deepcopy(state)


def _keep_spare(state: Any) -> None:
    """A device's memory is the training's own: no copy stays there."""
    if not any(t.is_cuda for t in _tensors(state)):
        _spare["state"] = state


def _tensors(value: Any) -> Any:
    if type(value) is torch.Tensor and value.layout is torch.strided and not value.requires_grad:
        return [value]
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for one in inside for tensor in _tensors(one)]


def _layout(tensor: Any) -> Any:
    return tensor.dtype, tensor.device, tensor.shape, tensor.stride()


def _write_all() -> None:
    while True:
        with _changed:
            if not _waiting:
                _writers.clear()
                return
            name, (state, made, args, kwargs) = _waiting.popitem()
            _changed.notify_all()
        begun, part = _time.monotonic(), f"{name}.part"
        try:
            for event in made:
                event.synchronize()
            torch.save(state, part, *args, **kwargs)
            _os.replace(part, name)
            _keep_spare(state)
        except Exception as err:  # told by the next save, or at the end; one to another path is written all the same
            with _contextlib.suppress(OSError):
                _os.remove(part)
            _failed[:] = _failed or [err]
            thread = _threading.current_thread()
            _threading.excepthook(_threading.ExceptHookArgs((type(err), err, err.__traceback__, thread)))
        if name in _waiting:  # it will be written again: leave the cores to training for a while
            _time.sleep(min(9 * (_time.monotonic() - begun), 1.0))


class UnsavedOutput:
    """Standard output whose last flush fails: Python then ends with status 120, once all else is done."""

    closed = False

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def flush(self) -> None:
        """And say why, at the very end."""
        if self.real is not None and not self.real.closed:
            self.real.flush()
        if _sys.is_finalizing():
            raise OSError("a checkpoint was not written (see above); the exit status is 120")


@_atexit.register
def _tell_of_unsaved() -> None:
    if _failed:
        _sys.stdout = UnsavedOutput(_sys.stdout)


def save(model):
    save_later(model.state_dict(), "x.pt")
