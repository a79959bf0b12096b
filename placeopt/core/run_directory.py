"""A folder of finished tasks: a run that was ended takes up what is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from placeopt.core.documents import sha256, write_json
from placeopt.core.errors import DocumentError
from placeopt.core.front import Front


class RunDirectory:
    """Fronts under keys of what they answer.

    A task has two files: ``KEY.task.json`` says what it was, ``KEY.front.json`` is its front. Both
    are written aside and renamed, so that a front that is there is whole.

    Parameters
    ----------
    path : path
        Made if it does not exist.

    Raises
    ------
    DocumentError
        The folder cannot be made.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            remedy = "give the path of a folder that is or can be made"
            raise DocumentError(
                f"not a folder: {error.strerror}", file=str(path), remedy=remedy
            ) from None

    def read(self, task: dict[str, Any]) -> Front | None:
        """Return the front of a task, None where it is not there or does not read as one."""
        file = self._file(task, "front")
        try:
            return Front.read(file) if file.exists() else None
        except DocumentError:
            return None

    def write(self, task: dict[str, Any], front: Front) -> None:
        """Keep the front of a task."""
        write_json(self._file(task, "task"), task)
        front.write(self._file(task, "front"))

    def _file(self, task: dict[str, Any], kind: str) -> Path:
        return self.path / f"{sha256(task)[:32]}.{kind}.json"
