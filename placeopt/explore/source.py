"""What an explorer shows: the fronts of files, which come and grow while runs work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from placeopt import plot, registry
from placeopt.core.errors import DocumentError, PlaceoptError
from placeopt.core.files.documents import read_json, what_is
from placeopt.core.files.paths import AnyPath
from placeopt.core.files.shipped import best_known, find
from placeopt.core.fronts.dominance import farthest
from placeopt.core.fronts.front import Front, merge
from placeopt.core.fronts.values import InstanceName, names_of
from placeopt.core.problem import Problem
from placeopt.core.runs.run_directory import INSTANCE, INTERIM
from placeopt.rl import rounds
from placeopt.rl.rounds import TrainingRounds

#: Points that a page shows, spread over the front.
MAX_SHOWN = 3000
#: Files of a folder that are looked at, the latest first, and their largest size in bytes.
_MAX_FILES, _MAX_BYTES = 5000, 2**26
#: Bytes in which a front or the rounds of a training say what they are.
_HEAD = 200
#: Seconds that one look spends on reading; the next look goes on.
_PATIENCE = 1.0
#: Seconds after which a run that has shown nothing more counts as ended.
_STALE = 20.0

#: From the file of a front and that of its instance: what for, and a command.
Advise = Callable[[Path | None, Path | None], list[tuple[str, str]]]


@dataclass(frozen=True)
class FrontFile:
    """A front that was found.

    Attributes
    ----------
    path : Path or None
        None for a run of this process that goes on.
    front : Front
    running : bool
        The run may find more.
    stamp : tuple
        Changes with the contents.
    """

    path: Path | None
    front: Front
    running: bool
    stamp: tuple[Any, ...]

    @property
    def group(self) -> str:
        """Fronts of one instance and one set of goals are shown together."""
        return " ".join((self.front.instance.sha256, *names_of(self.front.objectives)))


@dataclass(frozen=True)
class Shown:
    """What a page shows.

    Attributes
    ----------
    version : str
        Another one whenever anything else here is another.
    instance : InstanceName or None
        None where nothing was found yet.
    groups : list of (str, str)
        Keys and names of what could be shown instead.
    group : str
        The key of what is shown.
    front : Front or None
        None where there is none yet.
    problem : Problem or None
        The instance of the front, where it is at hand.
    problem_file : Path or None
    files : list of FrontFile
    trainings : list of TrainingRounds
        Of the folder.
    unread : int
        Files that the next look reads.
    """

    version: str
    instance: InstanceName | None = None
    groups: list[tuple[str, str]] = field(default_factory=list)
    group: str = ""
    front: Front | None = None
    problem: Problem | None = None
    problem_file: Path | None = None
    files: list[FrontFile] = field(default_factory=list)
    trainings: list[TrainingRounds] = field(default_factory=list)
    unread: int = 0


class FrontSource:
    """The fronts of a file, of an instance, or of a folder.

    Parameters
    ----------
    what : path
        A front file; an instance file, or the name of one that comes with placeopt; a folder.
    instance : path, optional
        The instance of the fronts, where it is not beside them.
    advise : callable, optional
        Returns commands about a plan, from the file of the front and that of the instance: pairs of
        what for and the command, with ``{point}`` for the number of the plan.

    Raises
    ------
    DocumentError
        It is none of these.
    """

    def __init__(
        self, what: AnyPath, instance: AnyPath | None = None, advise: Advise | None = None
    ):
        path = find(what)
        self.name, self.advise = str(what), advise
        self.path, self.problem = path, None
        self._given: tuple[Problem, Path] | None = None
        self._lock = threading.RLock()
        self._files: dict[Path, FrontFile | None] = {}
        self._stamps: dict[Path, tuple[Any, ...]] = {}
        self._trainings: dict[Path, TrainingRounds] = {}
        self._own: dict[str, FrontFile] = {}
        self._problems: dict[str, tuple[Problem, Path] | None] = {}
        self._shown: dict[str, Shown] = {}
        self.is_front = False
        if instance is not None:
            self._given = registry.read(instance), find(instance)
        if path.is_dir():
            return
        document = read_json(path)
        if isinstance(document, dict) and document.get("format") == "placeopt/front@1":
            Front.from_document(document, path)
            self.is_front = True
        elif isinstance(document, dict) and "problem" in document:
            self.problem = registry.from_document(document)
            self._given = self.problem, path
        else:
            kind = what_is(document) or "something else"
            remedy = "give a front, an instance, or a folder of runs"
            raise DocumentError(f"this is {kind}", file=str(path), remedy=remedy)

    # -- runs of this process ----------------------------------------------------------------------

    def add(self, name: str, front: Front, path: Path | None = None) -> None:
        """Show a front of this process; that of an earlier call by the same name goes.

        One without a path is of a run that goes on.
        """
        with self._lock:
            self._own[name] = FrontFile(path, front, path is None, (name, time.monotonic()))

    # -- looking -----------------------------------------------------------------------------------

    def look(self, group: str = "") -> Shown:
        """Return what is to be shown now, of the group given or of the latest one."""
        with self._lock:
            unread = self._read()
            own = [file for file in self._own.values() if file.path not in self._files]
            files = [*own, *(file for file in self._files.values() if file is not None)]
            names = {file.group: _name(file.front) for file in reversed(files)}
            group = group if group in names else next(iter([f.group for f in files]), "")
            own_part = [file for file in files if file.group == group]
            stamps = (
                unread,
                sorted(names),
                [f.stamp for f in own_part],
                list(self._stamps.values()),
            )
            version = f"{hash(repr(stamps)) & 0xFFFFFFFF:08x}"
            known = self._shown.get(group)
            if known is None or known.version != version:
                known = self._make(version, group, own_part, names, unread)
                self._shown[group] = known
            return known

    def _make(
        self,
        version: str,
        group: str,
        mine: list[FrontFile],
        names: dict[str, str],
        unread: int,
    ) -> Shown:
        fronts = [file.front for file in mine]
        result = merge(fronts) if fronts else None
        known = self._given
        if result is not None and (known is None or known[0].instance_name != result.instance):
            known = self._problem_of(mine[0])
        problem, file = known or (None, None)
        if result is not None and len(result) > MAX_SHOWN:
            signs = [o.sign for o in result.objectives]
            chosen = sorted(farthest(result.values * signs, MAX_SHOWN))
            result = replace(result, points=tuple(result.points[k] for k in chosen))
        named = None if problem is None else problem.instance_name
        if result is not None:
            named = result.instance
        return Shown(
            version,
            instance=named,
            groups=sorted(names.items(), key=lambda entry: entry[1]),
            group=group,
            front=result if result is not None and result.points else None,
            problem=problem,
            problem_file=file,
            files=mine,
            trainings=list(self._trainings.values()),
            unread=unread,
        )

    def _problem_of(self, found: FrontFile) -> tuple[Problem, Path] | None:
        """Return the instance of a front: kept in the run directory, beside, or shipped."""
        sha256 = found.front.instance.sha256
        if sha256 not in self._problems:
            folder = self.path if found.path is None else found.path.parent
            kept = folder / f"{sha256[:32]}.{INSTANCE}"
            file = kept if kept.exists() else plot.instance_file(found.front, folder / "front")
            self._problems[sha256] = None if file is None else (registry.read(file), file)
        return self._problems[sha256]

    # -- files -------------------------------------------------------------------------------------

    def _candidates(self) -> Iterator[Path]:
        """Yield the files that may be fronts or rounds."""
        if self.is_front:
            yield self.path
        elif self.problem is not None:
            for folder in {self.path.parent.resolve(), Path.cwd()}:
                yield from folder.glob("*.json")
            if (known := best_known(self.problem.name)) is not None:
                yield known
        else:
            yield from self.path.resolve().rglob("*.json")

    def _read(self) -> int:
        """Read what is new, for a while; return how many files are left for the next look."""
        stamps = {}
        for path in self._candidates():
            try:
                about = path.stat()
            except OSError:
                continue
            if about.st_size <= _MAX_BYTES and path.is_file():
                running = path.name.endswith(INTERIM) and time.time() - about.st_mtime < _STALE
                stamps[path] = (about.st_mtime_ns, about.st_size, running)
        latest = sorted(stamps, key=lambda path: stamps[path], reverse=True)[:_MAX_FILES]
        wanted = {path: stamps[path] for path in latest}
        for path in [path for path in self._stamps if path not in wanted]:
            for known in (self._stamps, self._files, self._trainings):
                known.pop(path, None)
        new = [path for path in wanted if self._stamps.get(path) != wanted[path]]
        end = time.monotonic() + _PATIENCE
        for count, path in enumerate(new):
            if count and time.monotonic() > end:
                return len(new) - count
            self._stamps[path] = wanted[path]
            self._take(path, wanted[path])
        return 0

    def _take(self, path: Path, stamp: tuple[Any, ...]) -> None:
        """Read one file, if it is a front of ours, or the rounds of a training."""
        self._files[path] = None
        try:
            with open(path, "rb") as stream:
                head = stream.read(_HEAD)
            if b"placeopt/front@" in head:
                front = Front.read(path)
                if self.problem is None or front.instance == self.problem.instance_name:
                    self._files[path] = FrontFile(path, front, stamp[-1], stamp)
            elif b"placeopt/rounds@" in head and self.problem is None:
                self._trainings[path] = rounds.read(path)
        except (OSError, PlaceoptError):
            return  # no front, or one that is being replaced: the next look sees it


def _name(front: Front) -> str:
    return f"{front.instance.name}: {', '.join(names_of(front.objectives))}"
