"""Processes of Python without the second that a start takes: forked from one that has imported."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

#: Reads a job a line, forks for it, tells the exit code and the CPU seconds of the child, which
#: is as `python -c` begins, but that what stands in the first argument was imported, and is not
#: taken apart at its end.
_SERVER = """
import atexit, json, os, resource, sys, time, traceback
exec(sys.argv[1])
spent = 0.0
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(job["cwd"])
        os.environ.clear()
        os.environ.update(job["environment"])
        sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
        for number, name in enumerate((job["in"], job["out"], job["err"])):
            handle = os.open(name, os.O_WRONLY | os.O_CREAT if number else os.O_RDONLY)
            os.dup2(handle, number)
            os.close(handle)
        sys.path[:1] = job["path"]
        sys.argv = ["-c", *job["words"]]
        code = 0
        try:
            exec(compile(job["code"], "<string>", "exec"), {"__name__": "__main__"})
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
            code = 1
        atexit._run_exitfuncs()
        sys.stdout.flush()
        os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() + used.ru_utime + used.ru_stime
    print(code, seconds - spent, flush=True)
    spent = seconds
"""


#: All of placeopt and what it imports, but torch, and what asks for other distributions.
EVERYTHING = """
import contextlib, importlib, pkgutil
import placeopt

names = [one.name for one in pkgutil.walk_packages(placeopt.__path__, "placeopt.")]
for name in ("highspy", "moocore", "numba", "ortools.sat.python.cp_model", "pandas", "pymoo",
             "pyomo.environ", "pyscipopt", "scipy.optimize", "alive_progress", *names):
    if not name.startswith(("placeopt.rl", "placeopt.environments")):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
"""


class Forks:
    """A process that has run `imports`, and children of it.

    `seconds` are CPU seconds of all of them together that have not ended.
    """

    seconds = 0.0

    def __init__(self, imports: str):
        command = [sys.executable, "-c", _SERVER, imports]
        atexit.register(self.end)
        self._own = 0.0
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self,
        code: str,
        *words: object,
        path: Sequence[str | Path] = ("",),
        cwd: str | Path | None = None,
        environment: Mapping[str, str | None] | None = None,
        stdin: bytes = b"",
        stdout: str = "",
    ) -> subprocess.CompletedProcess[str]:
        """Run code with words behind it, as `subprocess.run([python, "-c", code, *words])`.

        `path` stands first where modules are looked for, `environment` is added to that of here
        (None: taken away), and `stdout` is the name of a file.
        """
        inherited = dict(os.environ) | dict(environment or {})
        assert self._server.stdin is not None and self._server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(stdout or f"{folder}/out"), Path(folder, "err")
            Path(folder, "in").write_bytes(stdin)
            job = {
                "code": code,
                "words": [str(word) for word in words],
                "path": [str(one) for one in path],
                "cwd": str(cwd or os.getcwd()),
                "environment": {k: v for k, v in inherited.items() if v is not None},
                "in": f"{folder}/in",
                "out": str(out),
                "err": str(err),
            }
            self._server.stdin.write(json.dumps(job) + "\n")
            self._server.stdin.flush()
            ended, seconds = self._server.stdout.readline().split()
            Forks.seconds += float(seconds)
            self._own += float(seconds)
            return subprocess.CompletedProcess(
                [sys.executable, "-c", code, *job["words"]],
                int(ended),
                "" if stdout else out.read_text(encoding="utf-8"),
                err.read_text(encoding="utf-8"),
            )

    def end(self) -> None:
        """End the process, unless it has ended; its children have."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()  # from here on its seconds are among those of children
        Forks.seconds, self._own = Forks.seconds - self._own, 0.0


@cache
def _shared() -> Forks:
    return Forks(EVERYTHING)


#: As `python -m placeopt`.
PROGRAM = "import sys, placeopt.__main__ as program; sys.argv[0] = 'placeopt'; program.main()"


def forked(code: str, *words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run code where everything is imported; the options are those of `Forks.run`."""
    return _shared().run(code, *words, **options)


def placeopt(*words: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """Run a command line, as `python -m placeopt`."""
    return forked(PROGRAM, *words, **options)
