"""LP and MPS files, read by HiGHS; further goals are free rows."""

from __future__ import annotations

import math
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from placeopt.core.errors import DocumentError, UnsupportedError
from placeopt.exact.files.content import Column, Content, Row
from placeopt.exact.highs import new_highs

_SENSE = re.compile(r"^\s*(min\w*|max\w*)\b[^\S\n]*(multi-objectives)?", re.I | re.M)
_ROWS_BEGIN = re.compile(r"^\s*(subject\s+to|such\s+that|s\.t\.|st\.?)\s*:?", re.I | re.M)
#: The head of one of several objectives, with what Gurobi and CPLEX write behind its name.
_HEAD = re.compile(r"([^\s:<>=]+)\s*:((?:\s*(?:priority|weight|abstol|reltol)\s*=\s*\S+)*)", re.I)


def read_lp(text: str, name: str) -> Content:
    """Read an LP file.

    Goals are the objective, all of a section of multi-objectives, and all rows without a limit,
    written as ``cost: 3 x + y >= -infinity``.
    """
    text, name_of_goal, senses = _one_objective(_without_comments(text))
    return _read(text, ".lp", name, name_of_goal, senses)


def _without_comments(text: str) -> str:
    return re.sub(r"\\.*", "", text)


def _one_objective(text: str) -> tuple[str, str, dict[str, str]]:
    """Return a text with one objective, its name, and the senses of others that are rows now."""
    begin, end = _SENSE.search(text), _ROWS_BEGIN.search(text)
    if begin is None or end is None:
        return text, "objective", {}
    section = text[begin.end() : end.start()]
    if not begin.group(2):
        head = re.match(r"\s*([^\s:<>=]+)\s*:", section)
        return text, head.group(1) if head else "objective", {}
    sense = "max" if begin.group(1).lower().startswith("max") else "min"
    heads = list(_HEAD.finditer(section))
    ends = [*(head.start() for head in heads[1:]), len(section)]
    bodies = [section[head.end() : stop] for head, stop in zip(heads, ends, strict=True)]
    names = [head.group(1) for head in heads]
    senses = {
        head.group(1): _turned(sense) if _is_negative(head.group(2)) else sense for head in heads
    }
    rows = "".join(
        f" {one}: {body.strip()} >= -infinity\n" for one, body in zip(names, bodies, strict=True)
    )
    return f"{sense}imize\n\nsubject to\n{rows}{text[end.end() :]}", "", senses


def _turned(sense: str) -> str:
    return "min" if sense == "max" else "max"


def _is_negative(attributes: str) -> bool:
    return bool(re.search(r"weight\s*=\s*-", attributes, re.I))


def read_mps(text: str, name: str) -> Content:
    """Read an MPS file.

    Goals are all rows of type N, in the file's sense.
    """
    lines, goals = [], list[str]()
    section = ""
    for line in text.splitlines():
        if line[:1].strip() and not line.startswith("*"):
            section = line.split()[0].upper()
        elif section == "ROWS" and (parts := line.split()) and parts[0].upper() == "N":
            goals.append(" ".join(parts[1:]))
            if len(goals) > 1:  # HiGHS drops further rows of type N
                at = line.upper().index("N")
                line = f"{line[:at]}G{line[at + 1 :]}"
        lines.append(line)
    goal = goals[0] if goals else "objective"
    senses = dict.fromkeys(goals[1:], "")
    return _read("\n".join(lines) + "\n", ".mps", name, goal, senses)


def _read(text: str, suffix: str, name: str, goal: str, others: dict[str, str]) -> Content:
    """Read a text by HiGHS.

    Parameters
    ----------
    goal : str
        Name of the objective; empty where it is none.
    others : dict
        Rows that are goals, with their senses; empty for the file's.
    """
    lp = _lp_of(text, suffix)
    import highspy

    sense = "max" if lp.sense_ == highspy.ObjSense.kMaximize else "min"
    columns = list(_columns(lp, highspy))
    rows = list(_rows(lp))
    costs = {k: float(c) for k, c in enumerate(lp.col_cost_) if c}
    goals = [(sense, Row(goal, costs, constant=lp.offset_))] if goal else []
    for row in rows:
        if row.name in others or row.is_free:
            constant = 0.0 - row.lower if math.isfinite(row.lower) else 0.0
            goal_row = Row(row.name, row.terms, constant=constant)
            goals.append((others.get(row.name) or sense, goal_row))
    if len(goals) > 1:  # an objective of nothing stands for none
        goals = [(sense, row) for sense, row in goals if row.terms or row.name != goal]
    names = {row.name for _, row in goals}
    kept = [row for row in rows if row.name not in names]
    return Content(name, columns, kept, tuple(goals), sense)


def _lp_of(text: str, suffix: str) -> Any:
    """Return what HiGHS reads; its own words where it cannot."""
    import highspy

    highs, said = new_highs(), list[str]()
    highs.setOptionValue("log_to_console", False)
    logging = highspy.cb.HighsCallbackType.kCallbackLogging

    def on_event(kind: Any, message: str, *_: Any) -> None:
        if kind == logging and message.startswith(("ERROR:", "WARNING:")):
            said.append(message)

    highs.setCallback(on_event, None)
    highs.startCallback(logging)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"model{suffix}"
        file.write_text(text, encoding="utf-8")
        status = highs.readModel(str(file))
    ignored = [message for message in said if message.rstrip().endswith(": ignored")]
    if status == highspy.HighsStatus.kError or ignored:
        kind = suffix[1:].upper()
        raise DocumentError(_in_words(ignored or said, kind), remedy=f"give a legal {kind} file")
    if highs.getModel().hessian_.dim_:
        raise UnsupportedError(
            "the objective is quadratic; placeopt enumerates linear goals: replace products of "
            "binary variables by a variable of their own"
        )
    lp = highs.getLp()
    if not lp.num_col_:
        raise DocumentError("the file has no variables", remedy="give one with a model in it")
    return lp


def _in_words(said: list[str], kind: str) -> str:
    """Return the first message of HiGHS in one line: what is wrong, and where."""
    for message in said:
        words = message.partition(":")[2].removesuffix(": ignored\n")
        lines = words.strip().splitlines()
        if lines and not lines[0].startswith("Parser error"):
            place = re.search(r"-->.*?:(\d+):(\d+)", message)
            where = f", in line {place.group(1)}, column {place.group(2)}" if place else ""
            return f"this is no {kind} file: {lines[0].strip()}{where}"
    return f"HiGHS cannot read this as {kind}"


def _columns(lp: Any, highspy: Any) -> Iterator[Column]:
    api = highspy.HighsVarType
    kinds = {
        api.kContinuous: "real",
        api.kInteger: "whole",
        api.kSemiContinuous: "semi-real",
        api.kSemiInteger: "semi-whole",
    }
    integrality = list(lp.integrality_) or [api.kContinuous] * lp.num_col_
    names = list(lp.col_names_) or [f"c{k}" for k in range(lp.num_col_)]
    for name, low, high, kind in zip(names, lp.col_lower_, lp.col_upper_, integrality, strict=True):
        yield Column(name, float(low), float(high), kinds[kind])


def _rows(lp: Any) -> Iterator[Row]:
    import scipy.sparse as sp

    matrix = lp.a_matrix_
    data, indices, starts = matrix.value_, matrix.index_, matrix.start_
    shape = (lp.num_row_, lp.num_col_)
    A = sp.csc_matrix((np.array(data), np.array(indices), np.array(starts)), shape=shape).tocsr()
    names = list(lp.row_names_) or [f"r{k}" for k in range(lp.num_row_)]
    for k, (name, low, high) in enumerate(zip(names, lp.row_lower_, lp.row_upper_, strict=True)):
        own = slice(A.indptr[k], A.indptr[k + 1])
        terms = dict(zip(A.indices[own].tolist(), A.data[own].tolist(), strict=True))
        yield Row(name, terms, float(low), float(high))
