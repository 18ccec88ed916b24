import copy
import threading

import torch

_writer = None


def save(model, path):
    global _writer
    if _writer is not None:
        _writer.join()
    state = copy.deepcopy(model.state_dict())
    _writer = threading.Thread(target=torch.save, args=(state, path))
    _writer.start()
