"""Which address shows what.

``/`` the list, ``/run/NAME`` one run, ``/run/NAME/now`` its numbers as JSON, ``/run/NAME/report`` its report,
``/compare?run=A&run=B`` two runs, ``/ui.css`` and ``/ui.js``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from hotlap import __version__
from hotlap.records.comparison import Comparison
from hotlap.records.errors import HotlapError
from hotlap.records.run_folder import RunFolder
from hotlap.report import words
from hotlap.report.keep import command_text
from hotlap.report.page import environment
from hotlap.report.pages import render
from hotlap.report.saved import JUDGED, load_report
from hotlap.ui import show_comparison, show_list, show_run
from hotlap.ui.answer import Answer, json_answer, page, report_page, text_file
from hotlap.ui.door import Refused
from hotlap.ui.line import Line, Lines, reason, silent_s
from hotlap.ui.run_state import States
from hotlap.ui.shelf import Shelf, check_folder, read_file

__all__ = ["Compare", "Pages"]

Compare = Callable[[RunFolder, RunFolder], Comparison]
Query = dict[str, list[str]]
ROOM = "hotlap.ui"
BYTES = "surrogateescape"
"""A folder's name is bytes, of which some are no text: there and back they stay the same."""
GONE = "There is no such page. The list has all runs."


class Pages:
    """Everything that can be looked at. ``compare`` is given by the command line, where the rooms meet that it needs.

    Raises Refused for an address that names nothing.
    """

    def __init__(self, root: Path, compare: Compare) -> None:
        self._shelf = Shelf(root)
        self._lines = Lines()
        self._states = States(self._lines)
        self._compare = compare

    def answer(self, path: str, query: Query) -> Answer:
        """The answer to an address, ``path`` still percent-encoded."""
        try:
            return self._answer(path, query)
        except HotlapError as err:  # the folder itself cannot be read
            return self._trouble("Nothing can be shown", reason(err))

    def _answer(self, path: str, query: Query) -> Answer:
        if path == "/":
            return self._list(query)
        if path == "/compare":
            return self._comparison(query)
        if path == "/ui.css":
            return text_file(self._text("style.css") + self._text("ui.css"), "text/css")
        if path == "/ui.js":
            return text_file(self._text("script.js") + self._text("ui.js"), "text/javascript")
        return self._of_a_run(path)

    def _of_a_run(self, path: str) -> Answer:
        parts = path.split("/")[1:]
        shown = {2: self._run, 3: {"now": self._now, "report": self._report}.get(parts[-1])}.get(len(parts))
        if parts[0] != "run" or shown is None:
            raise Refused(404, GONE)
        folder = self._shelf.find(unquote(parts[1], errors=BYTES))
        if folder is None:
            raise Refused(404, "There is no such run here (any more). The list has all runs.")
        try:
            return shown(folder)
        except Exception as err:  # whatever lies in a run's folder: this run's page says so, the server goes on
            return self._trouble(folder.path.name, reason(err))

    def _list(self, query: Query) -> Answer:
        words_ = " ".join(query.get("q", []))[:200]
        lines, links = self._all_lines()
        found = len(lines)
        if words_.strip():  # looked for in what is shown, so that each has to be made
            rows = show_list.matching([self._row(line) for line in lines], words_)
            found, rows = len(rows), rows[: show_list.MOST_ROWS]
        else:
            rows = [self._row(line) for line in lines[: show_list.MOST_ROWS]]
        return self._page(
            "list.html", rows=rows, words=words_, found=found, total=len(lines), links=links,
            root=str(self._shelf.root),
        )  # fmt: skip

    def _all_lines(self) -> tuple[list[Line], list[str]]:
        names, links = self._shelf.names()
        self._lines.forget_all_but(set(names))
        return show_list.newest_first([self._lines.line(self._shelf.folder(name)) for name in names]), links

    def _row(self, line: Line) -> show_list.Row:
        try:
            return show_list.row(line, silent_s(self._shelf.folder(line.name).path, line.status))
        except Exception as err:  # numbers that nobody can say: this line tells, the others go on
            return show_list.row(Line(line.name, problem=reason(err)), None)

    def _run(self, folder: RunFolder) -> Answer:
        state = self._states.read(folder)
        run = state.run
        return self._page(
            "run.html", name=folder.path.name, script=show_list.script_title(run.command), run=run,
            command=command_text(run.command), view=show_run.shown(state), before=self._before(folder.path.name, run),
            path=str(folder.path), notes=run.notes, link=_link(folder.path.name),
        )  # fmt: skip

    def _before(self, name: str, run: Any) -> str | None:
        """The newest earlier run of the same command: what one compares with. None for a run that is a comparison."""
        if run.kind in JUDGED:
            return None
        lines = [line for line in self._all_lines()[0] if line.kind not in JUDGED]
        names = [line.name for line in lines if line.command == tuple(run.command) or line.name == name]
        at = names.index(name) if name in names else len(names)
        return names[at + 1] if at + 1 < len(names) else None

    def _now(self, folder: RunFolder) -> Answer:
        try:
            return json_answer(show_run.now(self._states.read(folder)))
        except Exception as err:  # half written a moment ago, perhaps: the page says so and asks again
            return json_answer({"problem": reason(err)})

    def _report(self, folder: RunFolder) -> Answer:
        lying = read_file(folder.path / "report.html")
        if lying is not None:
            return report_page(lying)
        check_folder(folder.path)
        return report_page(render(load_report(folder)).encode("utf-8", "replace"))

    def _comparison(self, query: Query) -> Answer:
        names = list(dict.fromkeys(query.get("run", [])))
        if len(names) != 2:
            return self._trouble("Compare two runs", "Tick two different runs in the list, then Compare.", 400)
        folders = [self._shelf.find(name) for name in names]
        if None in folders:
            raise Refused(404, "One of the two runs is not here (any more). The list has all runs.")
        a, b = sorted((f for f in folders if f is not None), key=self._age)
        try:
            for folder in (a, b):
                check_folder(folder.path)
            view = show_comparison.shown(self._compare(a, b))
        except Exception as err:  # see above
            return self._trouble("These two do not compare", reason(err))
        return self._page("compare.html", view=view, words=words, links=[_link(f.path.name) for f in (a, b)])

    def _age(self, folder: RunFolder) -> tuple[str, str]:
        """The earlier one is A."""
        line = self._lines.line(folder)
        return line.started, line.name

    def trouble(self, why: str, status: int) -> Answer:
        """A page that says why there is none."""
        return self._trouble("Not here" if status == 404 else "Not answered", why, status)

    def _trouble(self, title: str, why: str, status: int = 200) -> Answer:
        return self._page("message.html", title=title, lines=[why], status=status)

    def _page(self, template: str, status: int = 200, **values: Any) -> Answer:
        made = environment(ROOM).get_template(template).render(version=__version__, link_to=_link, **values)
        return page(made, status)

    def _text(self, name: str) -> str:
        return environment(ROOM).get_template(name).render()


def _link(name: str) -> str:
    """A run's name as a part of an address."""
    return quote(name, safe="", errors=BYTES)
