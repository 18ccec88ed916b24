"""The run's numbers in Prometheus' text format 0.0.4, and the small server that gives them out.

Format: https://prometheus.io/docs/instrumenting/exposition_formats/ . Base units, no rounding; what was not measured is
left out.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from hotlap import __version__
from hotlap.guard.status import Status
from hotlap.records.errors import EXIT_USAGE, HotlapError

__all__ = ["CONTENT_TYPE", "MetricsServer", "exposition"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
Labels = dict[str, str]


def exposition(status: Status, script: str) -> str:
    """All metrics as one text, each sample with the script's name; of a guard that gave up, the version alone."""
    version = _family("build_info", "gauge", "Version of Hotlap.", [({"version": __version__}, 1)])
    if not status.watched:
        return version
    own = {"script": script}
    drift = status.drift
    memory: list[tuple[Labels, float | None]] = [
        ({**own, "of": "script"}, status.rss_bytes),
        ({**own, "of": "children"}, status.children_rss_bytes),
        ({**own, "of": "device"}, status.device_bytes),
    ]
    phases: list[tuple[Labels, float | None]] = [({**own, "phase": p}, s) for p, s in status.phases.items()]
    flag: Labels = {**own, "cause": drift.cause, "phase": drift.phase} if drift is not None else own
    families = [
        _family("steps_total", "counter", "Steps made.", [(own, status.steps)]),
        _family("samples_total", "counter", "Samples trained on.", [(own, status.samples or None)]),
        _family("train_seconds_total", "counter", "Seconds from the first step on.", [(own, status.train_s)]),
        _family("step_seconds", "gauge", "Mean seconds per step lately.", [(own, status.step_s)]),
        _family("samples_per_second", "gauge", "Throughput lately.", [(own, status.samples_per_s)]),
        _family("last_step_age_seconds", "gauge", "Seconds since the last step.", [(own, status.last_step_age_s)]),
        _family("roof_ratio", "gauge", "Throughput over the measured roof.", [(own, status.roof_share)]),
        _family("phase_seconds", "gauge", "Mean seconds per step lately, by phase.", phases),
        _family("memory_bytes", "gauge", "Resident memory; reserved memory of the device.", memory),
        _family("left_seconds", "gauge", "Seconds to the end, where the steps are known.", [(own, status.left_s)]),
        _family("drift", "gauge", "1 while steps take longer than they did.", [(flag, float(drift is not None))]),
        _family("drifts_total", "counter", "Drifts that were warned of.", [(own, status.drifts)]),
    ]
    return "".join(families) + version


def _family(name: str, kind: str, meaning: str, samples: list[tuple[Labels, float | None]]) -> str:
    lines = [f"hotlap_{name}{_labels(labels)} {_number(value)}\n" for labels, value in samples if value is not None]
    return f"# HELP hotlap_{name} {meaning}\n# TYPE hotlap_{name} {kind}\n{''.join(lines)}" if lines else ""


def _labels(labels: Labels) -> str:
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return repr(value) if isinstance(value, int) else repr(float(value))


class _Handler(BaseHTTPRequestHandler):
    """``GET /metrics``; the server has ``text``."""

    server_version = f"hotlap/{__version__}"

    def do_GET(self) -> None:
        if self.path.partition("?")[0] not in ("/metrics", "/"):
            self.send_error(404, "There is /metrics alone")
            return
        server = self.server
        assert isinstance(server, _Server)
        body = server.text().encode("utf-8", "replace")
        self.send_response(200)
        self.send_header("Content-Type", CONTENT_TYPE)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: stderr is the script's."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, address: tuple[str, int], text: Callable[[], str]) -> None:
        self.text = text
        super().__init__(address, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A reader that hangs up is its own affair, and nothing for the script's stderr."""


class MetricsServer:
    """Serves from :meth:`start` to :meth:`stop`. The port is taken at once, so that a wrong one is told before the run.

    Raises HotlapError when the port cannot be had.
    """

    def __init__(self, host: str, port: int, text: Callable[[], str]) -> None:
        try:
            self._server = _Server((host, port), text)
        except (OSError, OverflowError) as err:
            why = getattr(err, "strerror", None) or str(err)
            hint = "Name another port with --metrics PORT (0: any that is free), or another --metrics-host."
            raise HotlapError(f"Cannot serve metrics on {host}:{port}: {why}.", hint, EXIT_USAGE) from err
        self._thread: threading.Thread | None = None

    @property
    def address(self) -> str:
        """Where it is served."""
        host, port = self._server.server_address[:2]
        return f"http://{host!s}:{port}/metrics"

    def start(self) -> None:
        """Answer from now on."""
        self._thread = threading.Thread(target=self._server.serve_forever, name="hotlap-metrics", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Give the port back."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._thread = None
        self._server.server_close()
