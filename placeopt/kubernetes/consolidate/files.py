"""The answer of ``placeopt consolidate`` with the front, the steps and the script, in a folder."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from placeopt.core.errors import OutputError, PlaceoptError
from placeopt.core.files.documents import layout, write_text
from placeopt.kubernetes import origin as origins
from placeopt.kubernetes.approval import Approval
from placeopt.kubernetes.approval_page import ApprovalPage
from placeopt.kubernetes.consolidate.answer import ConsolidationAnswer
from placeopt.kubernetes.consolidate.pages import AnsweredPage, markdown
from placeopt.kubernetes.consolidate.situation import Situation

#: The files of a folder, and what each is.
FILES = {
    "answer.json": "the answer",
    "answer.md": "the answer for a pull request",
    "instance.json": "the cluster as an instance, its names in instance.origin.json",
    "front.json": "the plan, as placeopt pick, plot and report read it",
    "steps.json": "the steps, as placeopt verify reads them",
    "steps.sh": "the steps as a script for kubectl",
    "report.html": "a page to approve the plan",
    "import.md": "what was assumed, pinned and left out",
}


def write(folder: Path, base: Situation, found: ConsolidationAnswer) -> Iterator[str]:
    """Write the files of an answer; yield a sentence for each that cannot be made.

    Raises
    ------
    OutputError
        The folder cannot be made.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder}: cannot make the folder: {error.strerror}") from None
    origin = base.imported.origin
    texts: dict[str, Callable[[], str]] = {
        "answer.json": lambda: layout(found.model_dump(mode="json")),
        "answer.md": lambda: markdown(found),
        "instance.json": lambda: layout(base.imported.document),
        "front.json": base.front.to_json,
        "steps.json": lambda: _exported(base, "json"),
        "steps.sh": lambda: _exported(base, "commands"),
        "report.html": lambda: _report(base, found),
        "import.md": lambda: base.imported.notes.markdown("rolling-update"),
    }
    for name, text in texts.items():
        try:
            made = text()
        except PlaceoptError as error:
            (folder / name).unlink(missing_ok=True)  # of another day
            yield f"{name} is not written: {error}"
            continue
        write_text(folder / name, made.rstrip("\n") + "\n")
    origins.write(origins.beside(folder / "instance.json"), origin)
    script = folder / "steps.sh"
    if script.exists():
        script.chmod(script.stat().st_mode | 0o111)


def _exported(base: Situation, form: str) -> str:
    from placeopt.kubernetes.export import export

    return export(base.problem, base.plan, base.imported.origin, form=form)


def _report(base: Situation, found: ConsolidationAnswer) -> str:
    from placeopt import report

    front = base.front
    index = next((k for k, p in enumerate(front.points) if p.plan == base.plan), None)
    approval = Approval(base.problem, base.plan, front, base.imported.origin)
    page = AnsweredPage(ApprovalPage(approval), found)
    return report.html(front, problem=base.problem, index=index, approved=page)
