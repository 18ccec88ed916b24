"""What the output of a launcher says of a rank that the kernel ended."""

from __future__ import annotations

import pytest

from hotlap.trial.reasons import explain

KILLED = {
    "torchrun": (
        "E0301 api.py:874] failed (exitcode: -9) local_rank: 1 (pid: 412) of binary: /usr/bin/python\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n====\ntrain.py FAILED\n"
        "  exitcode  : -9 (pid: 412)\n  traceback : Signal 9 (SIGKILL) received by PID 412\n"
    ),
    "spawn": "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL\n",
    "loader": "RuntimeError: DataLoader worker (pid(s) 412) is killed by signal: Killed. \n",
    "accelerate": "subprocess.CalledProcessError: Command '['python']' died with <Signals.SIGKILL: 9>.\n",
    "deepspeed": "[ERROR] [launch.py:321:sigkill_handler] ['python'] exits with return code = -9\n",
    "mpirun": "mpirun noticed that process rank 1 with PID 412 on node a exited on signal 9 (Killed).\n",
    "srun": "srun: error: node7: task 1: Killed\n",
}


@pytest.mark.parametrize("launcher", KILLED)
def test_a_rank_that_the_kernel_ended_for_want_of_memory_is_out_of_memory(launcher: str) -> None:
    def say(memory_kill: bool) -> str:
        return explain(1, KILLED[launcher], sandboxed=True, memory_kill=memory_kill)

    assert say(True) == "out of memory: the kernel ended one of its processes"
    assert say(False).startswith("crashed with exit code 1"), "somebody else may have"


def test_a_crash_beside_another_process_that_the_kernel_ended_is_a_crash() -> None:
    text = "epoch 9: -9.2\nKeyError: 'a'\n"
    assert explain(1, text, sandboxed=True, memory_kill=True) == "crashed with exit code 1: KeyError: 'a'"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("UnpicklingError: two options, \x1b[1mdo those only if you trust it\x1b[0m.",
         "UnpicklingError: two options, do those only if you trust it"),
        ("\x1b[1;35mValueError\x1b[0m: \x1b[35mno\x1b[0m", "ValueError: no"),
        ("OSError: \x1b]8;;https://a.example\x1b\\see\x1b]8;;\x1b\\ this", "OSError: see this"),
        ("TimeoutError: waited for long ...", "TimeoutError: waited for long ..."),
    ],
)  # fmt: skip
def test_an_error_is_told_without_its_colours_and_its_full_stop(line: str, told: str) -> None:
    text = f"Traceback (most recent call last):\n  here\n{line}\n"
    assert explain(1, text, sandboxed=True, memory_kill=False) == f"crashed with exit code 1: {told}"
