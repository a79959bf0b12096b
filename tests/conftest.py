"""What all tests share: how many cases are tried, and what each costs."""

from __future__ import annotations

import os
import resource
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import numba  # noqa: F401  # so that commands that a test runs in its own process find compiled kernels
import pytest
from browser import Page, browser
from effort import THOROUGH, every, tries
from forks import Forks

# A deadline is one of the machine: beside other work the same code takes ten times as long. How
# many examples are tried is said here alone.
hypothesis.settings.register_profile(
    "placeopt", deadline=None, derandomize=True, database=None, max_examples=tries(10, 200)
)
# Who only wants to know whether a test fails: `benchmarks/mutants.py`.
hypothesis.settings.register_profile(
    "unshrunk",
    hypothesis.settings.get_profile("placeopt"),
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "placeopt"))

# Tests run side by side, one on each core: threads of torch and BLAS would wait for each other,
# which cost an example that trains an agent seven times the CPU seconds.
os.environ.setdefault("OMP_NUM_THREADS", "1")

ROOT = Path(__file__).parent
BEGAN = time.monotonic()
#: Kernels look at no index: `make bounds` has them look.
FREE = os.environ.get("NUMBA_BOUNDSCHECK", "0") in ("", "0")
#: Test file -> its CPU seconds.
SPENT: Counter[str] = Counter()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Say what the suite can be asked for."""
    parser.addoption("--cpu", action="store_true", help="Tell the CPU seconds of each file.")
    parser.addoption("--minutes", type=float, help="Begin no test after these minutes.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what is marked, and cases that differ in numbers alone, unless asked for all."""
    if THOROUGH or any("::" in word for word in config.args):
        return
    cases: Counter[tuple[object, ...]] = Counter()
    kept: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        given = (
            item.callspec.params
            if isinstance(item, pytest.Function) and hasattr(item, "callspec")
            else {}
        )
        words = [str(value) for value in given.values() if not isinstance(value, int)]
        case = (item.path, getattr(item, "originalname", item.name), *words)
        more = cases[case] % every(item.path.relative_to(ROOT)) > 0
        rare = item.get_closest_marker("thorough") or (item.get_closest_marker("bounds") and FREE)
        (left if more or rare else kept).append(item)
        cases[case] += 1
    items[:] = kept
    config.hook.pytest_deselected(items=left)


@pytest.fixture(scope="session")
def _chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    with browser(tmp_path_factory.mktemp("browser")) as opened:
        yield opened


@pytest.fixture
def chromium(_chromium: Page) -> Page:
    """Return the browser of this process, as it is after its start."""
    _chromium.send("Emulation.setEmulatedMedia", features=[])
    _chromium.send("Page.navigate", url="about:blank")
    _chromium.errors.clear()
    _chromium.requests.clear()
    return _chromium


def cpu() -> float:
    """Return the CPU seconds of this process, of those that it waited for, and of forks."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return Forks.seconds + sum(one.ru_utime + one.ru_stime for one in used)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Begin to count CPU seconds; leave out what is not reached in time."""
    item.user_properties.append(("cpu", cpu()))
    minutes = item.config.getoption("--minutes")
    if minutes and time.monotonic() - BEGAN > 60 * minutes:
        pytest.skip(f"not reached within {minutes:g} minutes")


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Say what the test took, up to here: the report of its end carries it along."""
    item.user_properties.append(("cpu", cpu()))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Sum up, also of what other processes ran."""
    seen = [seconds for name, seconds in report.user_properties if name == "cpu"]
    if report.when == "teardown" and len(seen) == 2:
        SPENT[report.nodeid.partition("::")[0]] += seen[1] - seen[0]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tell what the files took, the longest first."""
    if terminalreporter.config.getoption("--cpu"):
        terminalreporter.section(f"CPU seconds: {sum(SPENT.values()):.0f}")
        for file, seconds in SPENT.most_common():
            terminalreporter.write_line(f"{seconds:8.1f} {file}")
