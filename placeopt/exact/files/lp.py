"""LP files, as CPLEX, Gurobi and HiGHS write and read them; further goals are free rows."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NoReturn

from placeopt.core.errors import DocumentError, UnsupportedError
from placeopt.exact.files.draft import Draft, Row, finite, number

#: What begins a section, as the first word of a line.
_HEADERS = {
    "several": r"(?:min\w*|max\w*)\s+multi-objectives",
    "goal": r"minimi[sz]e|minimum|min|maximi[sz]e|maximum|max",
    "refused": r"sos[12]?|general\s+constraints?|gencons?|lazy\s+constraints?|user\s+cuts?|pwlobj"
    r"|scenario",
    "rows": r"(?:subject\s+to|such\s+that|s\.t\.|st\.|st)\s*:?",
    "bounds": r"bounds?",
    "whole": r"generals?|gen|integers?|int",
    "binary": r"binar(?:y|ies)|bin",
    "zero": r"semi-continuous|semis?",
    "end": r"end",
}
_HEADER = re.compile(
    r"\s*(?:" + "|".join(f"(?P<{k}>{words})" for k, words in _HEADERS.items()) + r")(?=\s|$)", re.I
)
_KEYWORD = re.compile(
    "|".join(one for k, one in _HEADERS.items() if k != "refused") + "|free|inf|infinity", re.I
)
#: Names may hold operators within brackets, as in `x[1,-2]`; no number is followed closely by an e.
_TOKEN = re.compile(
    r"(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![eE]))"
    r"|(?P<arrow>->)|(?P<relation><=|=<|>=|=>|==|<|>|=)|(?P<sign>[+-])|(?P<colon>:)"
    r"|(?P<name>(?:[^\W\d]|[!\"#$%&?@'`~])"
    r"(?:\[[^\]\s]*\]|\([^)\s]*\)|\{[^}\s]*\}|/(?=[^\W\d])|[^\s+\-*/^<>=:;,|()\[\]{}])*)"
    r"|(?P<other>\S)"
)
_RELATIONS = {"<=": "<", "=<": "<", ">=": ">", "=>": ">", "==": "="}
_ATTRIBUTES = ("priority", "weight", "abstol", "reltol")


def read_lp(text: str, name: str) -> Draft:
    """Read an LP file.

    Goals are the objective, all of a section of multi-objectives, and all rows without a limit,
    written as ``cost: 3 x + y >= -infinity``.

    Raises
    ------
    DocumentError, UnsupportedError
        What cannot be read, and in which line.
    """
    reader = _Reader(name)
    reader.read(text)
    return reader.draft


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    line: int


class _Reader:
    def __init__(self, name: str):
        self.draft = Draft(name)
        self._tokens: list[_Token] = []
        self._at = 0
        self._objective = ""  # the name of a single objective
        self._is_goal = True

    def read(self, text: str) -> None:
        """Read all sections."""
        seen, ended = "", False
        for section, head, tokens in _sections(text):
            self._tokens, self._at = [*tokens, _Token("end", "the end of the section", 0)], 0
            if ended and tokens:
                self._fail("nothing may stand behind 'end'")
            ended = section == "end"
            if section in ("goal", "several") and seen:
                self._fail(f"a second objective, {head!r}")
            if section in ("", "refused") or not (seen or section in ("goal", "several")):
                self._begins_wrongly(section, head)
            seen = section
            if section:
                getattr(self, f"_read_{section}")(head)
        if not ended and seen:
            raise DocumentError("the file ends before 'end'", remedy="write it at the end")
        self._finish()

    def _begins_wrongly(self, section: str, head: str) -> None:
        if section == "refused":
            raise UnsupportedError(
                f"the section {' '.join(head.split())!r} is no linear rows; write it with linear "
                "rows and binary variables"
            )
        if section or len(self._tokens) > 1:
            self._fail("it begins with no 'minimize' or 'maximize'")

    def _finish(self) -> None:
        draft = self.draft
        for name, column in draft.columns.items():
            column.with_defaults(name)
        for name, row in draft.rows.copy().items():
            if row.is_free:
                draft.add_goal(name, draft.sense, draft.rows.pop(name))
        if self._objective:
            draft.drop_empty_goal(self._objective)

    # -- tokens ------------------------------------------------------------------------------------

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, kind: str, what: str) -> _Token:
        if self._next.kind != kind:
            self._fail(f"{what} is expected")
        self._at += 1
        return self._tokens[self._at - 1]

    def _is(self, kind: str) -> bool:
        return self._next.kind == kind

    @property
    def _is_label(self) -> bool:
        return self._is("name") and self._tokens[self._at + 1].kind == "colon"

    @property
    def _line_goes_on(self) -> bool:
        """Whether the next token stands in the line of the last one."""
        return self._at > 0 and self._next.line == self._tokens[self._at - 1].line

    def _fail(self, problem: str) -> NoReturn:
        token = self._next
        line = token.line or (self._tokens[self._at - 1].line if self._at else 0)
        where = f" at {token.text!r}" if token.line else ""
        if token.text in ("[", "]", "*", "^"):
            what = "the objective" if self._is_goal else "a row"
            raise UnsupportedError(
                f"{what} is quadratic, in line {line}; placeopt reads linear functions: replace "
                "products of binary variables by a variable of their own"
            )
        if token.kind == "arrow":
            raise UnsupportedError(
                f"an indicator, in line {line}; write it with linear rows and binary variables"
            )
        raise DocumentError(
            f"this is no LP file: {problem}{where}" + (f", in line {line}" if line else ""),
            remedy="give a legal LP file",
        )

    # -- expressions -------------------------------------------------------------------------------

    def _label(self) -> str:
        if not self._is_label:
            return ""
        name = self._take("name", "a name").text
        self._at += 1
        if _KEYWORD.fullmatch(name):
            self._at -= 2
            self._fail("a keyword is no name")
        return name

    def _sign(self) -> float:
        sign = 1.0
        while self._is("sign"):
            sign = -sign if self._next.text == "-" else sign
            self._at += 1
        return sign

    def _sum(self) -> Row:
        """Read terms and constants; a term without a sign ends them, unless it is the first."""
        row, is_first = Row(), True
        while is_first or self._is("sign"):
            if is_first and not self._is_term:
                break
            sign = self._sign()
            if not self._is_term:
                self._fail("a number or a variable is expected")
            value = sign
            if self._is("number"):
                value *= finite(self._next.text, self._next.line)
                self._at += 1
            if self._is("name") and not self._is_label:
                name = self._variable()
                row.terms[name] = row.terms.get(name, 0.0) + value
            elif self._tokens[self._at - 1].kind == "number":
                row.constant += value
            else:
                self._fail("a number or a variable is expected")
            is_first = False
        return row

    @property
    def _is_term(self) -> bool:
        return self._is("sign") or self._is("number") or (self._is("name") and not self._is_label)

    def _variable(self) -> str:
        if self._is("name") and _KEYWORD.fullmatch(self._next.text):
            self._fail("a keyword is no name of a variable")
        name = self._take("name", "a variable").text
        self.draft.column(name)
        return name

    def _limit(self) -> float:
        """Read the number on one side of a relation."""
        sign = self._sign()
        if self._is("name") and self._next.text.lower() in ("inf", "infinity"):
            self._at += 1
            return sign * math.inf
        token = self._take("number", "a number")
        return sign * number(token.text, token.line)

    def _relation(self) -> str:
        text = self._take("relation", "one of <=, >= and =").text
        return _RELATIONS.get(text, text)

    # -- sections ----------------------------------------------------------------------------------

    def _read_goal(self, head: str) -> None:
        self.draft.sense = "max" if head.lower().startswith("max") else "min"
        self._objective = self._label() or "objective"
        self.draft.add_goal(self._objective, self.draft.sense, self._sum())
        if not self._is("end"):
            self._fail("a sign or a section is expected")

    def _read_several(self, head: str) -> None:
        self.draft.sense = sense = "max" if head.lower().startswith("max") else "min"
        turned = "min" if sense == "max" else "max"
        while not self._is("end"):
            name = self._label()
            if not name:
                self._fail("a name of an objective and ':' are expected")
            weight = 1.0
            while self._is("name") and self._next.text.lower() in _ATTRIBUTES:
                key = self._take("name", "a name").text.lower()
                if self._relation() != "=":
                    self._fail(f"'{key} = number' is expected")
                value = self._limit()
                weight = value if key == "weight" else weight
            self.draft.add_goal(name, turned if weight < 0 else sense, self._sum())

    def _read_rows(self, head: str) -> None:
        self._is_goal = False
        while not self._is("end"):
            line, name = self._next.line, self._label()
            self.draft.add_row(name, self._row(), line)
            if not self._is("end") and self._line_goes_on and not self._is_label:
                self._fail("a limit is one number, and variables stand on the left; a new line")

    def _row(self) -> Row:
        """Read ``sum <= number``, ``number <= sum`` or ``number <= sum <= number``."""
        if self._is_limit_alone:
            left = self._limit()
            relation = self._relation()
            row = self._sum()
            self._restrict(row, {"<": ">", ">": "<"}.get(relation, relation), left)
            if self._is("relation"):
                other = self._relation()
                if other != relation or relation == "=":
                    self._fail("a row between two numbers has <= twice, or >= twice; not")
                self._restrict(row, relation, self._limit())
            return row
        row = self._sum()
        self._restrict(row, self._relation(), self._limit())
        if self._is("relation"):
            self._fail("a row between two numbers begins with a number; a new row is expected")
        return row

    @property
    def _is_limit_alone(self) -> bool:
        """Whether a number and a relation are next."""
        k = self._at
        while self._tokens[k].kind == "sign":
            k += 1
        token = self._tokens[k]
        is_limit = token.kind == "number" or token.text.lower() in ("inf", "infinity")
        return is_limit and self._tokens[k + 1].kind == "relation"

    def _restrict(self, row: Row, relation: str, value: float) -> None:
        if relation == "=" and math.isinf(value):
            self._fail("nothing equals infinity; another limit is expected")
        if relation != "<":
            row.lower = value
        if relation != ">":
            row.upper = value
        if row.lower == math.inf or row.upper == -math.inf:
            self._fail("a row with this limit never holds; another limit is expected")

    def _read_bounds(self, head: str) -> None:
        while not self._is("end"):
            line, lower, upper = self._next.line, None, None
            if self._is_limit_alone:
                left, relation = self._limit(), self._relation()
                column = self.draft.column(self._variable())
                lower = left if relation != ">" else None
                upper = left if relation != "<" else None
                if self._is("relation"):
                    if self._relation() != relation or relation == "=":
                        self._fail("a variable between two numbers has <= twice, or >= twice; not")
                    right = self._limit()
                    lower, upper = (lower, right) if relation == "<" else (right, upper)
            else:
                column = self.draft.column(self._variable())
                if self._is("name") and self._next.text.lower() == "free":
                    self._at += 1
                    lower, upper = -math.inf, math.inf
                else:
                    relation, right = self._relation(), self._limit()
                    lower = right if relation != "<" else None
                    upper = right if relation != ">" else None
            column.limit(line, lower, upper)

    def _names(self) -> Iterator[str]:
        while not self._is("end"):
            yield self._variable()

    def _read_whole(self, head: str) -> None:
        for name in self._names():
            self.draft.columns[name].is_whole = True

    def _read_binary(self, head: str) -> None:
        for name in self._names():
            self.draft.columns[name].is_binary = True

    def _read_zero(self, head: str) -> None:
        for name in self._names():
            self.draft.columns[name].may_be_zero = True

    def _read_end(self, head: str) -> None:
        """Nothing stands in it."""
        if not self._is("end"):
            self._fail("nothing may stand behind 'end'")


def _sections(text: str) -> Iterator[tuple[str, str, list[_Token]]]:
    """Yield kinds of sections, their first words, and what is in them."""
    kind, head, tokens = "", "", list[_Token]()
    for number_of_line, line in enumerate(text.splitlines(), start=1):
        line = line.partition("\\")[0]
        header = _HEADER.match(line)
        if header is not None and not line[header.end() :].lstrip().startswith(":"):
            if kind or tokens:
                yield kind, head, tokens
            kind, head, tokens = str(header.lastgroup), header.group().strip(), []
            line = line[header.end() :]
        for found in _TOKEN.finditer(line):
            tokens.append(_Token(str(found.lastgroup), found.group(), number_of_line))
    yield kind, head, tokens
