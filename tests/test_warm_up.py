"""``placeopt warm-up``, and what is said while kernels are compiled."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
from effort import tries
from hands import Hand, compile_for

from placeopt.cli.progress import NOT_KEPT, _Notice, announced
from placeopt.core.errors import UsageError
from placeopt.core.runs.compiling import Clock, Compiling
from placeopt.registry import methods
from placeopt.warm_up import warm_up

ROOT = Path(__file__).resolve().parents[1]


def test_every_method_of_a_problem_is_warmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """But those that need a file or an extra."""
    monkeypatch.setattr("placeopt.warm_up.PROOF_SECONDS", 0.05)
    told = []
    found = warm_up(["rescheduling"], on_result=lambda k, warmed: told.append((k, warmed.kind)))
    assert told == [(0, "rescheduling")] and found[0].seconds > 0
    serving = {
        name for name, m in methods().items() if "rescheduling" in m.problems and m.installed
    }
    assert set(found[0].methods) == serving - {"policy"}


@pytest.mark.parametrize("kind", ["multi-cluster", "edge-cloud"][: tries(1, 2)])
def test_proofs_are_warmed(kind: str) -> None:
    """A proof, and a search that only a clock ends, take paths of their own: nothing is new."""
    script = (
        "import gc\n"
        "from placeopt import api\n"
        "from placeopt.core.kernels.compiler import _Kernel\n"
        "from placeopt.registry import problem_class\n"
        "from placeopt.warm_up import prove\n"
        "def there():\n"
        "    kernels = (one for one in gc.get_objects() if type(one) is _Kernel)\n"
        "    return {(one.__name__, str(kinds)) for one in kernels for kinds in one.overloads}\n"
        f"prove('{kind}')\n"
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


def test_compiling_is_announced_once(capsys: pytest.CaptureFixture[str]) -> None:
    """Before it begins, where stderr is no terminal."""
    notice = _Notice()
    for kernel, count in (("_pack", 1), ("pack", 2), ("", 2), ("_send", 3)):
        notice(Compiling("temporal", kernel, count, 1.0, kept=True))
    said = capsys.readouterr().err.splitlines()
    assert said == ["compiling kernels, once; no time limit counts it"]


def test_compiling_in_words() -> None:
    state = Compiling("temporal", "_pack", 7, 3.2, True)
    assert str(state) == "compiling temporal, once: pack | 7 kernels | 3 s"


@pytest.mark.parametrize(("seconds", "kept"), [(0.2, True), (8.21, True), (8.21, False)])
def test_what_compiling_took_is_said(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    seconds: float,
    kept: bool,
) -> None:
    """From a second on, and where it is lost."""
    hand = Hand()
    monkeypatch.setattr("placeopt.cli.progress.CLOCK", clock := Clock(hand))
    with announced():
        compile_for(clock, hand, seconds, kept)
    lines = capsys.readouterr().err.splitlines()[1:]
    assert lines == ["compiled 1 kernel in 8.2 s"] * (seconds > 1) + [NOT_KEPT] * (not kept)


def test_a_terminal_sees_a_line_that_moves(tmp_path: Path) -> None:
    """From an empty cache: kernels by name, seconds, and the result at the end."""
    screen, terminal = pty.openpty()
    code = (
        "from placeopt.core.kernels.compile import kernel\n\n"
        "@kernel\ndef twice(x):\n    return 2 * x\n"
    )
    (tmp_path / "counted.py").write_text(code)
    script = "from placeopt.cli.progress import announced\nimport counted\n"
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
    assert "compiling counted, once: twice | 1 kernel" in shown
    assert shown.rstrip().endswith("\x1b[?25h") or "\x1b[?25h" in shown  # the cursor is back
