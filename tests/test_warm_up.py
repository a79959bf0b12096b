"""``placeopt warm-up``, and what is said while kernels are compiled."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from placeopt.cli.compiling import NOT_KEPT, _Notice, in_words
from placeopt.core.compiling import Compiling
from placeopt.core.errors import UsageError
from placeopt.registry import methods
from placeopt.warm_up import warm_up

ROOT = Path(__file__).resolve().parents[1]


def test_every_method_of_a_problem_is_warmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """But those that need a file or an extra."""
    monkeypatch.setattr("placeopt.warm_up.PROOF_SECONDS", 0.05)
    told = []
    found = warm_up(["rescheduling"], on_result=lambda k, warmed: told.append((k, warmed.kind)))
    assert told == [(0, "rescheduling")] and found[0].seconds > 0
    serving = {name for name, m in methods().items() if "rescheduling" in m.problems}
    assert set(found[0].methods) == serving - {"policy"}


@pytest.mark.parametrize("kind", ["edge-cloud", "multi-cluster"])
def test_proofs_are_warmed(kind: str) -> None:
    """A proof, and a search that only a clock ends, take paths of their own: nothing is new."""
    script = (
        "import gc\n"
        "from placeopt import api\n"
        "from placeopt.core.kernels.compile import _Kernel\n"
        "from placeopt.registry import problem_class\n"
        "from placeopt.warm_up import _prove\n"
        "def there():\n"
        "    kernels = (one for one in gc.get_objects() if type(one) is _Kernel)\n"
        "    return {(one.__name__, str(kinds)) for one in kernels for kinds in one.overloads}\n"
        f"_prove('{kind}')\n"
        "before = there()\n"
        f"problem = problem_class('{kind}').generate(1)\n"
        "api.solve(problem, 'auto', seconds=3.0, certify=True)\n"
        "print(len(before), sorted(name for name, _ in there() - before))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    count, new = done.stdout.split(maxsplit=1)
    assert int(count) > 5 and new.strip() == "[]"


def test_an_unknown_problem_is_refused() -> None:
    with pytest.raises(UsageError, match="temporal"):
        warm_up(["temporl"])


def test_a_package_is_named_once_and_the_end_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    """Where stderr is no terminal."""
    notice = _Notice()
    for kernel, count, seconds in (("_pack", 1, 0.0), ("pack", 2, 1.0), ("", 2, 2.0)):
        notice(Compiling("temporal", kernel, count, seconds, kept=True))
    notice.end()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("compiling temporal:") and lines[1:] == ["compiled 2 kernels in 2 s"]
    assert in_words(Compiling("temporal", "_pack", 7, 3.2, True)) == (
        "compiling temporal: pack | 7 kernels | 3 s"
    )


def test_what_is_lost_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    notice = _Notice()
    notice(Compiling("temporal", "pack", 1, 0.1, kept=False))
    notice.end()
    assert NOT_KEPT in capsys.readouterr().err


def test_a_terminal_sees_a_line_that_moves(tmp_path: Path) -> None:
    """From an empty cache: kernels by name, seconds, and the result at the end."""
    screen, terminal = pty.openpty()
    code = (
        "from placeopt.core.kernels.compile import kernel\n\n"
        "@kernel\ndef twice(x):\n    return 2 * x\n"
    )
    (tmp_path / "counted.py").write_text(code)
    script = "from placeopt.cli.compiling import announced\nimport counted\n"
    script += "with announced():\n    counted.twice(5)\n"
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{ROOT}", "TERM": "xterm"}
    subprocess.run(
        [sys.executable, "-c", script],
        stderr=terminal,
        env=environment | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
        check=True,
    )
    os.close(terminal)
    shown = os.read(screen, 65536).decode()
    assert "compiling counted: twice | 1 kernels" in shown
    assert shown.rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in shown  # the cursor is back
