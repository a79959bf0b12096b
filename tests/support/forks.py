"""Processes of Python without the second that a start takes: forked from one that has imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

#: Reads a job a line, forks for it, tells the exit code. The child is as `python -c` begins, but
#: that what stands in the first argument was imported, and is not taken apart at its end.
_SERVER = """
import atexit, json, os, sys, traceback
exec(sys.argv[1])
for line in sys.stdin:
    job = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(job["cwd"])
        os.environ.clear()
        os.environ.update(job["environment"])
        for number, name in enumerate((os.devnull, job["out"], job["err"])):
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
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Forks:
    """A process that has run `imports`, and children of it."""

    def __init__(self, imports: str):
        command = [sys.executable, "-c", _SERVER, imports]
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(
        self,
        code: str,
        *words: object,
        code_path: str | Path = "",
        cwd: str | Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run code with words behind it, as `subprocess.run([python, "-c", code, *words])`."""
        assert self._server.stdin is not None and self._server.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            job = {
                "code": code,
                "words": [str(word) for word in words],
                "path": [str(code_path)],
                "cwd": str(cwd or os.getcwd()),
                "environment": dict(os.environ if environment is None else environment),
                "out": str(out),
                "err": str(err),
            }
            self._server.stdin.write(json.dumps(job) + "\n")
            self._server.stdin.flush()
            ended = int(self._server.stdout.readline())
            return subprocess.CompletedProcess(
                [sys.executable, "-c", code, *job["words"]],
                ended,
                out.read_text(encoding="utf-8"),
                err.read_text(encoding="utf-8"),
            )

    def end(self) -> None:
        """End the process; its children have ended."""
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()
