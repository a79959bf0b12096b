"""A folder of finished tasks: a run that was ended takes up what is there."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from placeopt.core.errors import DocumentError, UsageError
from placeopt.core.files.arrays import Arrays, read_arrays, write_arrays
from placeopt.core.files.documents import Document, sha256, write_json
from placeopt.core.files.paths import AnyPath, checked_path, read_bytes
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.values import Objective, names_of, versions
from placeopt.core.problem import Problem

#: Largest file of arrays that is read, in bytes.
MAX_BYTES = 2**31
#: Shortest time between two checkpoints, seconds, and the largest share of the time they may take.
CHECKPOINT_SECONDS, CHECKPOINT_SHARE = 10.0, 0.05
#: Names of files behind the key: a result, what a task has found so far, an instance.
FRONT, INTERIM, INSTANCE = "front.json", "interim.json", "instance.json"
#: Seconds between two fronts of what a task has found so far.
SHOWN_SECONDS = 2.0
#: Tells the checkpoints that this process wrote from those of an earlier run.
_SESSION = secrets.token_hex(8)


def task_key(
    problem: Problem,
    objectives: Sequence[Objective],
    method: str,
    parameters: Document,
    seed: int,
    evaluations: float | None = None,
    seconds: float | None = None,
    start: Front | None = None,
) -> Document:
    """Return all that the result of a method depends on, as JSON.

    A parameter that names a file stands for what is in it.

    Raises
    ------
    UsageError
        A parameter is no number, text or list.
    """
    key: Document = {
        "instance": problem.instance_name.sha256,
        "objectives": names_of(objectives),
        "method": method,
        "parameters": {name: _content(name, value) for name, value in parameters.items()},
        "seed": seed,
        "evaluations": None if evaluations is None else int(evaluations),
        "seconds": None if seconds is None else float(seconds),
        "version": versions()["placeopt"],
    }
    if problem.goal_limits:
        key |= {"limits": problem.goal_limits}
    return key if start is None else key | {"start": sha256(start.to_document())}


def _content(name: str, value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_content(name, one) for one in value]
    if isinstance(value, (str, os.PathLike)):
        text = os.fspath(value)
        return sha256(read_bytes(text).hex()) if os.path.isfile(text) else text
    if value is not None and not isinstance(value, (bool, int, float)):
        raise UsageError(
            f"parameter {name!r} is a {type(value).__name__}; runs that are kept take numbers, "
            "text and lists of these"
        )
    return value


class RunDirectory:
    """Results under keys of what they depend on.

    A task has two files: ``KEY.task.json`` says what it was; ``KEY.front.json``, or ``KEY.npz`` for
    arrays, is its result. All are written aside and renamed, so that a result that is there is
    whole.

    Parameters
    ----------
    path : path
        Made if it does not exist.

    Raises
    ------
    DocumentError
        The folder cannot be made.
    """

    def __init__(self, path: AnyPath):
        self.path = Path(checked_path(path))
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            remedy = "give the path of a folder that is or can be made"
            raise DocumentError(
                f"not a folder: {error.strerror}", file=str(path), remedy=remedy
            ) from None

    def read(self, key: Document) -> Front | Arrays | None:
        """Return the result of a task, None where it is not there or does not read as one."""
        front, arrays = self._file(key, FRONT), self._file(key, "npz")
        try:
            if front.exists():
                return Front.read(front)
            return read_arrays(arrays, "result", MAX_BYTES) if arrays.exists() else None
        except DocumentError:
            return None

    def write(self, key: Document, result: Any) -> None:
        """Keep the result of a task if it is a front or arrays; forget its checkpoint."""
        if not isinstance(result, (Front, Arrays)):
            return
        write_json(self._file(key, "task.json"), key)
        if isinstance(result, Front):
            result.write(self._file(key, FRONT))
            self._file(key, INTERIM).unlink(missing_ok=True)
        else:
            write_arrays(self._file(key, "npz"), result)
        self.checkpoint(key).delete()

    def keep_instance(self, problem: Problem) -> None:
        """Keep an instance beside the fronts that answer it, for those who look at them."""
        file = self.path / f"{problem.instance_name.sha256[:32]}.{INSTANCE}"
        if not file.exists():
            problem.write(file)

    def show(self, key: Document, front: Front) -> None:
        """Keep what a task has found so far, for those who look; its result takes the place."""
        front.write(self._file(key, INTERIM))

    def checkpoint(self, key: Document) -> Checkpoint:
        """Return where a task keeps what it has found so far."""
        return Checkpoint(self._file(key, "checkpoint"))

    def _file(self, key: Document, kind: str) -> Path:
        return self.path / f"{sha256(key)[:32]}.{kind}"


class Checkpoint:
    """What a long task has found so far, in a file that is written now and then.

    Parameters
    ----------
    path : Path
        Without the suffix ``.npz``.
    """

    def __init__(self, path: Path):
        self._path, self._next = path, time.monotonic() + CHECKPOINT_SECONDS

    def of(self, name: str) -> Checkpoint:
        """Return the checkpoint of a part of the task."""
        return Checkpoint(self._path.with_name(f"{self._path.name}.{name}"))

    def read(self) -> Arrays | None:
        """Return what an earlier process left; None where there is nothing whole."""
        try:
            result = read_arrays(self.file, "checkpoint", MAX_BYTES)
        except DocumentError:
            return None
        return None if result.header.get("session") == _SESSION else result

    def save(self, content: Callable[[], Arrays], now: bool = False) -> None:
        """Write what `content` returns, if the last time is long ago or it must be `now`."""
        began = time.monotonic()
        if began < self._next and not now:
            return
        result = content()
        write_arrays(self.file, Arrays({**result.header, "session": _SESSION}, result.arrays))
        ended = time.monotonic()
        self._next = ended + max(CHECKPOINT_SECONDS, (ended - began) / CHECKPOINT_SHARE)

    def delete(self) -> None:
        """Delete the files of the task and of its parts."""
        for file in self._path.parent.glob(f"{self._path.name}*.npz"):
            file.unlink(missing_ok=True)

    @property
    def file(self) -> Path:
        """The file, for those who write it themselves."""
        return self._path.with_name(f"{self._path.name}.npz")
