"""Runs that are kept: what makes one stale, and what a damaged one says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from little_traces import drawn_policy, node, pod, trace

from placeopt.backtest import policies
from placeopt.backtest.page import baseline, rows
from placeopt.backtest.study import study
from placeopt.core.errors import DocumentError
from placeopt.core.runs.workers import Workers

DOCUMENT = trace([node("a"), node("b")], [pod(f"p{k}", 900, k) for k in range(3)])


def results(folder: Path, *texts: str) -> tuple[dict[str, Any], list[str]]:
    """Return the table, and the policies that were run anew."""
    ran: list[str] = []
    told = lambda _ended, _of, result: ran.append(result["policy"])  # noqa: E731
    return study(DOCUMENT, texts, [1], folder, Workers(), told), ran


def test_runs_are_taken_up_and_say_the_same(tmp_path: Path) -> None:
    first, ran = results(tmp_path, "none", "karpenter")
    assert sorted(ran) == ["karpenter", "none"]
    assert results(tmp_path, "none", "karpenter") == (first, [])
    assert results(tmp_path, "none", "karpenter:budget=1")[1] == ["karpenter:budget=1"]


def test_a_changed_file_of_a_trained_policy_is_played_anew(tmp_path: Path) -> None:
    file = tmp_path / "trained.npz"
    text = f"placeopt:interval=10min,method=policy,policy={file}"
    drawn_policy(file, 1)
    assert results(tmp_path / "runs", text)[1] == [text]
    assert results(tmp_path / "runs", text)[1] == []
    drawn_policy(file, 2)
    assert results(tmp_path / "runs", text)[1] == [text]
    drawn_policy(file, 1)
    assert results(tmp_path / "runs", text)[1] == []


SOURCE = """
from placeopt.backtest.policies.base import Policy

class Own(Policy):
    interval = {interval}

    def __init__(self, *, table: str = "", rule: str = "most"):
        self.table = table
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that writes the code of a policy of another distribution."""
    file = tmp_path / "own_policy_of_a_test.py"
    monkeypatch.syspath_prepend(str(tmp_path))

    def write_code(interval: float) -> None:
        file.write_text(SOURCE.format(interval=interval))
        sys.modules.pop(file.stem, None)

    def load() -> Any:
        __import__(file.stem)
        return sys.modules[file.stem].Own  # type: ignore[attr-defined]

    monkeypatch.setattr(policies, "offered", lambda group: {"own": load})
    yield write_code
    sys.modules.pop(file.stem, None)


def test_a_policy_of_another_distribution_whose_code_changes_is_played_anew(
    tmp_path: Path, plugin: Any
) -> None:
    plugin(60.0)
    assert results(tmp_path / "runs", "own", "none")[1] == ["own", "none"]
    assert results(tmp_path / "runs", "own", "none")[1] == []
    plugin(90.0)
    assert results(tmp_path / "runs", "own", "none")[1] == ["own"]


def test_a_file_that_a_setting_names_is_part_of_a_run(tmp_path: Path, plugin: Any) -> None:
    plugin(60.0)
    table = tmp_path / "table.csv"
    for text, ran in (("a", True), ("a", False), ("b", True), ("a", False)):
        table.write_text(text)
        assert bool(results(tmp_path / "runs", f"own:table={table}")[1]) == ran


def damaged(change: Any) -> Any:
    def spoil(text: str) -> str:
        document = json.loads(text)
        change(document)
        return json.dumps(document)

    return spoil


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: '{"figures": {}}',
        lambda text: text[: len(text) // 2],
        lambda text: "",
        lambda text: "[]",
        lambda text: "null",
        damaged(lambda run: run.pop("series")),
        damaged(lambda run: run["series"].pop("cores")),
        damaged(lambda run: run["series"].update(usd="many")),
        damaged(lambda run: run["figures"].pop("usd")),
        damaged(lambda run: run["figures"].update(usd="much")),
        damaged(lambda run: run["figures"].update(wait_99_s=None)),
        damaged(lambda run: run["figures"].update(usd=float("nan"))),
        damaged(lambda run: run["figures"].update(more=1)),
        damaged(lambda run: run.update(disturbed=[1])),
        damaged(lambda run: run.update(policy="karpenter")),
        damaged(lambda run: run.update(seed=7)),
    ],
)
def test_a_damaged_run_gets_one_message(tmp_path: Path, spoil: Any) -> None:
    """Before anything is run: what other files hold is not lost, and nobody waits for it."""
    results(tmp_path, "none")
    (file,) = tmp_path.glob("run-*.json")
    file.write_text(spoil(file.read_text()))
    ran: list[Any] = []
    with pytest.raises(DocumentError) as error:
        study(DOCUMENT, ["none", "karpenter"], [1], tmp_path, Workers(), lambda *_: ran.append(1))
    message = str(error.value)
    assert file.name in message and "delete the file" in message and "\n" not in message
    assert not ran
    file.unlink()
    assert results(tmp_path, "none", "karpenter")[1]


@pytest.mark.parametrize(
    ("texts", "known"), [(["none", "karpenter"], True), (["karpenter"], False)]
)
def test_what_is_saved_is_against_none(tmp_path: Path, texts: list[str], known: bool) -> None:
    table, _ = results(tmp_path, *texts)
    usd = {one["policy"]: one["figures"]["usd"] for one in table["policies"]}
    for one in table["policies"]:
        if known:
            assert one["saved_usd"] == usd["none"] - usd[one["policy"]]
            assert one["saved_share"] == pytest.approx(1 - usd[one["policy"]] / usd["none"])
        else:
            assert one["saved_usd"] is None and one["saved_share"] is None


def test_days_before_the_cluster_ran_are_no_baseline(tmp_path: Path) -> None:
    """Two nodes that nobody uses for three hours, but for one small pod."""
    late = [pod(f"p{k}", 3000, 3 * 3600, 6 * 3600) for k in range(2)]
    document = trace([node("a"), node("b")], [pod("early", 100, 0, 600), *late], seconds=6 * 3600)
    table = study(document, ["none", "karpenter"], [1], tmp_path, Workers())
    found = {one["policy"]: one for one in table["policies"]}
    assert table["saved_from_hour"] == 3
    assert (found["none"]["figures"]["usd"], found["none"]["usd_from"]) == (12.0, 6.0)
    assert found["none"]["saved_usd"] == 0.0
    assert found["karpenter"]["saved_usd"] == pytest.approx(6.0 - found["karpenter"]["usd_from"])
    shown = {row[0]: row[1] for row in rows(table)[1]}
    assert shown["none"] == "6.00" and "from day 0.1 on" in baseline(table)


def test_the_table_fits_eighty_columns(tmp_path: Path) -> None:
    """With money of millions; each row has all its cells, the head stands above."""
    from placeopt.backtest.page import page
    from placeopt.cli.screen import table

    names = ("none", "karpenter", "placeopt:interval=30min")
    found, _ = results(tmp_path, *names)
    for one in found["policies"]:
        one["figures"] |= {"usd": 43_885_927.5, "moved": 4415.3, "stopped": 4415.3}
        one |= {"saved_usd": -43_885_927.5, "saved_share": -0.613}
    head, cells = rows(found, few=True)
    text = table(head, cells, width=80)
    lines = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(any(line.startswith(name) for line in lines) for name in (*names, "bound"))
    assert {len(row) for row in cells} == {len(head)}
    assert "against none" in page(found)
    assert {len(row) for row in rows(found)[1]} == {len(rows(found)[0])}


def test_lines_over_time_say_their_values(tmp_path: Path) -> None:
    """Who points at a panel reads the hour and what each policy has there."""
    from placeopt.backtest.page import page

    found, _ = results(tmp_path, "none", "karpenter")
    for one, usd in zip(found["policies"], (3.25, 1.5), strict=True):
        one["series"]["usd"] = [2.0, usd]
    first, second = (one["policy"] for one in found["policies"])
    assert f"<title>USD an hour, hour 1: {first} 3.25, {second} 1.5</title>" in page(found)
