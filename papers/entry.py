"""What the five papers show and claim, one record each, and where each stands.

To add or settle an entry, edit the list of its paper in ``entries/<paper>.py``::

    Entry(
        "Fig. 8(b)", "Rejected requests by the ratio of replicas to clusters.",
        paper="at most 3.5 % at ratio 8",
        authors=".01 to 3.5 % (result files of the agents)",
        measure="hephaestus_ratios",            # measures/<measure>.py wrote the result
        ours=lambda r: f"{r['worst']:.2f} %",   # r: what its function `measure` returned
        holds=lambda r: r["worst"] <= 3.5,      # a claim with a number: met or missed
        why="Ours counts a partial spread as accepted, as the published class does.",
    )

* Without `holds` the entry is *regenerated*: a table or figure of which no number must be reached.
  A claim (`element` begins so) is never regenerated: it has `holds`, or `cannot`.
* `cannot="no rule is printed"`: the claim *cannot be judged*, whatever ours is, for that reason.
* `whose`: of a claim that is missed, whose the difference is, with the evidence in `why`.
* Without `measure` it is *open*, and `why` must say the reason.
* `nothing=True`: a drawing, notation or survey: it states no result; `why` says where it is here.
* `derived`: numbers in `paper` that follow from printed ones; `quotes.py` looks up the others.

``elements.py`` lists every table, figure, algorithm, block of equations and claim of the papers
with the entry that answers it: a new entry needs a line there.

Then ``python papers/run.py --page`` writes the page again, and tests/test_papers.py
checks it. How a measure is written stands in ``measure.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

#: What an entry may be, in the order in which the page counts them.
STATUSES = ("regenerated", "met", "missed", "cannot be judged", "open", "states no result")
#: Whose the difference of a missed claim may be; `open` where nothing here shows it.
WHOSE = ("paper", "paper against its code", "ours", "open")


@dataclass(frozen=True)
class Entry:
    """One table, figure or numbered claim of a paper.

    Attributes
    ----------
    element : str
        Its name in the paper: ``Table V``, ``Fig. 4a``, ``claim, sec. IV-A``.
    says : str
        What it shows or claims, in a sentence.
    paper : str
        The number or numbers printed there; in words where it is a picture.
    why : str
        Why ours differ; of an open entry the reason; of one without a result where it is here.
    authors : str
        Number that the authors published elsewhere, with its source: code, result files.
    measure : str
        Name of the measure whose result is shown; empty while there is none.
    ours : function
        The result -> our number or numbers, in words.
    holds : function
        The result -> whether the claim holds in ours; none where nothing is claimed. It returns
        None where a result of before has not what it takes: the claim is open then.
    figure, page : str
        A picture (PNG) and a page with more, from the root of the repository.
    nothing : bool
        The element states no result.
    cannot : str
        Why nothing here could tell whether the claim holds: no rule printed, another machine.
    whose : str
        One of `WHOSE`, of a claim that is missed.
    derived : tuple of str
        Numbers in `paper` that are not printed, but follow from numbers that are.
    """

    element: str
    says: str
    paper: str
    why: str
    authors: str = ""
    measure: str = ""
    ours: Callable[[Any], str] | None = None
    holds: Callable[[Any], bool | None] | None = None
    figure: str = ""
    page: str = ""
    nothing: bool = False
    cannot: str = ""
    whose: str = ""
    derived: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if bool(self.measure) != (self.ours is not None):
            raise ValueError(f"{self.element}: measure and ours come together")
        if self.nothing and self.measure:
            raise ValueError(f"{self.element}: what states no result has nothing to measure")
        if not self.measure and not self.why and not self.cannot:
            raise ValueError(f"{self.element}: say why it is open, or where it is here")
        if self.cannot and (self.holds or self.nothing):
            raise ValueError(f"{self.element}: what cannot be judged has nothing that holds")
        claim = self.element.startswith("claim")
        if claim and self.measure and not self.holds and not self.cannot:
            raise ValueError(f"{self.element}: a claim has `holds`, or `cannot` with the reason")
        if self.whose and self.whose not in WHOSE:
            raise ValueError(f"{self.element}: whose is {self.whose!r}; legal: {', '.join(WHOSE)}")

    def status(self, results: Mapping[str, Any]) -> str:
        """Return one of `STATUSES`, given the results by measure."""
        if self.nothing:
            return "states no result"
        if self.cannot:
            return "cannot be judged"
        if not self.measure or self.measure not in results:
            return "open"
        if self.holds is None:
            return "regenerated"
        held = self.holds(results[self.measure])
        return "open" if held is None else "met" if held else "missed"

    def verdict(self, results: Mapping[str, Any]) -> str:
        """Return the status, and of a missed claim whose the difference is."""
        status = self.status(results)
        return f"{status}: {self.whose}" if status == "missed" and self.whose else status

    def shown(self, results: Mapping[str, Any]) -> str:
        """Return our number or numbers in words; empty where there are none."""
        if self.ours is None or self.measure not in results:
            return ""
        return self.ours(results[self.measure])

    def reason(self, results: Mapping[str, Any]) -> str:
        """Return why ours differ, why it cannot be judged, or why the entry is open."""
        if self.cannot:
            return f"Cannot be judged: {self.cannot} {self.why}".rstrip()
        if self.measure and self.measure not in results:
            return f"Not measured yet: `make papers ONLY={self.measure}`. {self.why}".rstrip()
        return self.why


@dataclass(frozen=True)
class Paper:
    """A paper: `key` names its file, `title` and `where` name the paper, `problem` is ours."""

    key: str
    title: str
    where: str
    problem: str
    entries: tuple[Entry, ...]
