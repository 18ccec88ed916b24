"""Batches fetched by a thread while the step computes."""

import queue as _queue
import threading as _threading
from typing import Any

import torch

__all__ = ["fetch_ahead"]


def fetch_ahead(loader: Any, depth: int) -> Any:
    """Yield what ``loader`` yields, in the same order; a thread keeps up to ``depth`` batches ready."""
    ready: Any = _queue.Queue(depth)
    stop = _threading.Event()
    cuda: Any = torch.cuda
    device = cuda.current_device() if cuda.is_initialized() else None

    def put(entry: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put(entry, timeout=0.1)
                return True
            except _queue.Full:
                continue
        return False

    def work() -> None:
        try:
            if device is not None:  # a thread has a current device of its own
                cuda.set_device(device)
            for batch in loader:
                if not put((batch, None)):
                    return
            put((None, StopIteration()))
        except BaseException as err:  # handed to the loop, which raises it
            put((None, err))

    thread = _threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        while True:
            batch, end = ready.get()
            if isinstance(end, StopIteration):
                return
            if end is not None:
                raise end
            yield batch
    finally:
        stop.set()
        thread.join()
