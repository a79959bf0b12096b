"""The models of the tests of MultiObjectiveAlgorithms.jl (MOA), and what these state of them.

Read at version b71397a of github.com/jump-dev/MultiObjectiveAlgorithms.jl; the numbers are theirs,
the code is not. The tests of its algorithms share models: a case names all tests that have it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyomo.environ as pyo

import placeopt
import placeopt.ask
from placeopt.core.errors import PlaceoptError
from placeopt.exact.extreme import extreme_points
from placeopt.exact.memory import Found

#: Their tables of numbers, and four instances of vOptLib with their fronts.
DATA = json.loads((Path(__file__).parent / "peer_models.json").read_text())


@dataclass(frozen=True)
class Peer:
    """A model and what is stated of it.

    Attributes
    ----------
    name : str
    tests : str
        Where the peer has it: algorithm: test.
    build : callable
        Returns the Pyomo model.
    stated : str
        ``front``; one ``point``; ``some`` points of it, or so many; ``ideal``; ``extreme`` points,
        which are the answer; ``of front``, the extreme points among those of the front;
        ``infeasible``, ``unbounded``, ``time-limit`` or ``refused``; ``other``, a point that
        placeopt means otherwise.
    values : sequence or int
        The points stated, or how many there are.
    options : dict
        Of the question.
    ask : callable
        `placeopt.enumerate`, or a question of `placeopt.ask`.
    why : str
        Why placeopt's answer is another one.
    """

    name: str
    tests: str
    build: Callable[[], pyo.ConcreteModel]
    stated: str
    values: Any = ()
    options: dict[str, Any] = field(default_factory=dict)
    ask: Callable[..., placeopt.Front] = placeopt.enumerate
    why: str = ""
    is_slow: bool = False


def linear(
    goals: Sequence[Sequence[float]],
    sense: str,
    rows: Sequence[tuple[Sequence[float], str, float]] = (),
    domain: Any = pyo.Binary,
    bounds: tuple[float | None, float | None] = (None, None),
    constants: Sequence[float] = (),
) -> pyo.ConcreteModel:
    """Return ``max`` or ``min`` goals @ x within rows of coefficients, sense and limit."""
    model = pyo.ConcreteModel()
    model.x = pyo.Var(range(len(goals[0])), domain=domain, bounds=bounds)

    def total(coefficients: Sequence[float]) -> Any:
        return sum(c * model.x[j] for j, c in enumerate(coefficients) if c)

    model.rows = pyo.ConstraintList()
    for coefficients, kind, limit in rows:
        body = total(coefficients)
        model.rows.add(
            body <= limit if kind == "<=" else body >= limit if kind == ">=" else body == limit
        )
    kind = pyo.maximize if sense == "max" else pyo.minimize
    for k, row in enumerate(goals):
        constant = constants[k] if constants else 0
        model.add_component(f"f{k}", pyo.Objective(expr=total(row) + constant, sense=kind))
    return model


def negated(rows: Sequence[Sequence[float]]) -> list[list[float]]:
    """Return rows with the other sign."""
    return (-np.array(rows)).tolist()


# -- knapsacks -------------------------------------------------------------------------------------

C = DATA["c"]
FITS_3, FITS_4 = [(C[3], "<=", 2137)], [(DATA["weights_4"], "<=", 2653)]
FRONT_2, FRONT_3, FRONT_4 = DATA["front_2"], DATA["front_3"], DATA["front_4"]
PROFITS_17, FITS_17 = DATA["profits_17"], [(DATA["weights_17"], "<=", 900)]
FRONT_17, EXTREME_17 = DATA["front_17"], DATA["extreme_17"]
P_30, FITS_30 = DATA["p_30"], [(DATA["weights_30"], "<=", 204)]
ASSIGNMENT, ASSIGNED, LAP, LAP_2 = (
    DATA[name] for name in ("assignment", "assigned", "lap", "lap_2")
)
P1, P2, P3, W, THIRD = (DATA[name] for name in ("p1", "p2", "p3", "w", "third"))
MOLP_2 = DATA["molp_2"]


def two_knapsack(name: str) -> Callable[[], pyo.ConcreteModel]:
    """Return the builder of an instance of vOptLib."""
    data = DATA[name]
    fits = [(data["weights"], "<=", data["capacity"])]
    return lambda: linear(data["profits"], "max", fits)


# -- assignment and transport ----------------------------------------------------------------------


def assignment(costs: Sequence[Sequence[Sequence[float]]], sense: str) -> pyo.ConcreteModel:
    """Return an assignment of rows to columns."""
    n = len(costs[0])
    rows = []
    for k in range(n):
        one = np.zeros((2, n, n))
        one[0, k, :] = one[1, :, k] = 1
        rows += [(line.ravel().tolist(), "==", 1) for line in one]
    return linear([np.ravel(table).tolist() for table in costs], sense, rows)


def transport() -> pyo.ConcreteModel:
    """Return the bicriteria transportation problem of the NISE method."""
    costs = [
        [1, 2, 7, 7, 1, 9, 3, 4, 8, 9, 4, 6],
        [4, 4, 3, 4, 5, 8, 9, 10, 6, 2, 5, 1],
    ]
    rows = [
        ([float(place % 4 == j) for place in range(12)], "==", most)
        for j, most in enumerate((11, 3, 14, 16))
    ] + [
        ([float(place // 4 == i) for place in range(12)], "==", most)
        for i, most in enumerate((8, 19, 17))
    ]
    return linear(costs, "min", rows, pyo.NonNegativeReals)


def deliveries() -> pyo.ConcreteModel:
    """Return the model of their issue 105: by plant and customer, columns of the table first."""
    costs, times = [100, 120, 150, 110, 200, 170], [8, 3, 4, 2, 5, 4]
    rows: list[tuple[Sequence[float], str, float]] = [
        ([1, 0, 1, 0, 1, 0], "<=", 10),
        ([0, 1, 0, 1, 0, 1], "<=", 8),
        ([1, 1, 0, 0, 0, 0], "==", 5),
        ([0, 0, 1, 1, 0, 0], "==", 8),
        ([0, 0, 0, 0, 1, 1], "==", 5),
    ]
    return linear([costs, times, [1] * 6], "min", rows, pyo.NonNegativeIntegers)


def generalised_assignment() -> pyo.ConcreteModel:
    """Return the model of their issue 122."""
    tables = [[*table, third] for table, third in zip((P1, P2, P3, W), THIRD, strict=True)]
    rows: list[tuple[Sequence[float], str, float]] = []
    for i, limit in enumerate((34, 33, 31)):
        weights = np.zeros((3, 10))
        weights[i] = tables[3][i]
        rows.append((weights.ravel().tolist(), "<=", limit))
    for j in range(10):
        one = np.zeros((3, 10))
        one[:, j] = 1
        rows.append((one.ravel().tolist(), "==", 1))
    return linear([np.ravel(table).tolist() for table in tables[:3]], "max", rows)


# -- small linear programs -------------------------------------------------------------------------

BOLP_ROWS = [([1, 1], ">=", 1), ([0.5, 1], ">=", 0.75), ([0, 1], ">=", 0.25)]


def bolp(
    goals: Sequence[Sequence[float]], sense: str = "min", constants: Sequence[float] = ()
) -> pyo.ConcreteModel:
    """Return the bi-objective linear program of MathOptInterface's tests."""
    return linear(goals, sense, BOLP_ROWS, pyo.NonNegativeReals, constants=constants)


MOLP_1 = [([0, 1], "<=", 3), ([3, -1], "<=", 6)]
UNITS = np.eye(4)[[0, 1, 3, 2]].tolist()
TURNED = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]]
AT_MOST_TWO = [([1, 1, 1, 1], "<=", 2)]


def plain(sense: str, rows: Any = (), bounds: Any = (0, None)) -> pyo.ConcreteModel:
    """Return two variables that are the goals."""
    return linear(np.eye(2).tolist(), sense, rows, pyo.Reals, bounds)


def portfolio() -> pyo.ConcreteModel:
    """Return a variance and a mean."""
    mean = [0.05470748600000001, 0.18257110599999998]
    model = pyo.ConcreteModel()
    model.w = pyo.Var(range(2), bounds=(0, 1))
    model.all = pyo.Constraint(expr=model.w[0] + model.w[1] == 1)
    covariance = [[0.00076204, 0.00051972], [0.00051972, 0.00546173]]
    variance = sum(covariance[i][j] * model.w[i] * model.w[j] for i in range(2) for j in range(2))
    model.variance = pyo.Objective(expr=variance)
    model.loss = pyo.Objective(expr=-mean[0] * model.w[0] - mean[1] * model.w[1])
    return model


def sharpe() -> pyo.ConcreteModel:
    """Return a mean and a ratio with a root."""
    mean, q = [0.006898463772627643, -0.02972609131603086], [0.030446, 0.00393731, 0.00713285]
    model = pyo.ConcreteModel()
    model.w = pyo.Var(range(2), bounds=(0, 1), initialize=0.5)
    model.all = pyo.Constraint(expr=model.w[0] + model.w[1] == 1)
    gain = mean[0] * model.w[0] + mean[1] * model.w[1]
    risk = q[0] * model.w[0] ** 2 + 2 * q[1] * model.w[0] * model.w[1] + q[2] * model.w[1] ** 2
    model.gain = pyo.Objective(expr=gain, sense=pyo.maximize)
    model.ratio = pyo.Objective(expr=gain / pyo.sqrt(risk), sense=pyo.maximize)
    return model


def unbounded_second() -> pyo.ConcreteModel:
    """Return a model whose second goal alone is unbounded."""
    return plain("max", [([1, 0], "<=", 1)])


NO_TIME = {"seconds": 0}
NOTHING = "they solve once or twice before they look at the clock; placeopt asks nothing"

PEERS = [
    Peer(
        "knapsack, 3 goals, min",
        "DominguezRios, KirlikSayin, TambyVanderpooten: problem_knapsack_min_p3",
        lambda: linear(negated(C[:3]), "min", FITS_3, constants=[1, 1, 1]),
        "front",
        [[1 - v for v in row] for row in FRONT_3],
    ),
    Peer(
        "knapsack, 3 goals, max",
        "DominguezRios, KirlikSayin, TambyVanderpooten: problem_knapsack_max_p3",
        lambda: linear(C[:3], "max", FITS_3),
        "front",
        FRONT_3,
    ),
    Peer(
        "knapsack, 4 goals, min",
        "DominguezRios, KirlikSayin, TambyVanderpooten: problem_knapsack_min_p4",
        lambda: linear(negated(C), "min", FITS_4),
        "front",
        negated(FRONT_4),
    ),
    Peer(
        "knapsack, 4 goals, max",
        "DominguezRios, KirlikSayin, TambyVanderpooten: problem_knapsack_max_p4",
        lambda: linear(C, "max", FITS_4),
        "front",
        FRONT_4,
    ),
    Peer(
        "assignment, 3 goals, min",
        "DominguezRios, KirlikSayin, TambyVanderpooten: problem_assignment_min_p3",
        lambda: assignment(ASSIGNMENT, "min"),
        "front",
        ASSIGNED,
    ),
    Peer(
        "assignment, 3 goals, max",
        "DominguezRios, KirlikSayin, TambyVanderpooten: problem_assignment_max_p3",
        lambda: assignment([negated(table) for table in ASSIGNMENT], "max"),
        "front",
        negated(ASSIGNED),
    ),
    Peer(
        "deliveries, a goal that is constant",
        "DominguezRios, KirlikSayin, TambyVanderpooten: problem_issue_105",
        deliveries,
        "front",
        [[2380 + 60 * k, 81 - 3 * k, 18] for k in range(6)],
    ),
    Peer(
        "generalised assignment, 3 goals",
        "DominguezRios, KirlikSayin, TambyVanderpooten: issue_122",
        generalised_assignment,
        "front",
        42,
    ),
    Peer(
        "knapsack of 30, 3 goals",
        "DominguezRios, KirlikSayin, TambyVanderpooten: issue_133",
        lambda: linear(P_30, "max", FITS_30),
        "front",
        95,
        is_slow=True,
    ),
    Peer(
        "knapsack, 2 goals, min",
        "Chalmet, RandomWeighting: knapsack_min",
        lambda: linear(negated(C[:2]), "min", FITS_3),
        "front",
        negated(FRONT_2),
    ),
    Peer(
        "knapsack, 2 goals, max, with a constant",
        "Chalmet, RandomWeighting: knapsack_max",
        lambda: linear(C[:2], "max", FITS_3, constants=[1, 0]),
        "front",
        [[a + 1, b] for a, b in FRONT_2],
    ),
    Peer(
        "no time, 2 goals",
        "Chalmet, RandomWeighting: time_limit",
        lambda: linear(C[:2], "max", FITS_3),
        "time-limit",
        options=NO_TIME,
        why=NOTHING,
    ),
    Peer(
        "no time, 3 goals",
        "DominguezRios, KirlikSayin, TambyVanderpooten: time_limit",
        lambda: linear(negated(C[:3]), "min", FITS_3),
        "time-limit",
        options=NO_TIME,
    ),
    Peer(
        "no time, 3 goals, anchors first",
        "Sandwiching: time_limit",
        lambda: linear(negated(C[:3]), "min", FITS_3),
        "time-limit",
        options=NO_TIME,
        why=NOTHING,
    ),
    Peer(
        "no time, knapsack of 17",
        "Dichotomy, GeneralDichotomy, EpsilonConstraint: time_limit",
        lambda: linear(PROFITS_17, "max", FITS_17),
        "time-limit",
        options=NO_TIME,
        why=NOTHING,
    ),
    Peer(
        "no time, one goal",
        "Dichotomy: scalar_time_limit",
        lambda: linear([[2]], "min", (), pyo.NonNegativeReals),
        "time-limit",
        options=NO_TIME,
    ),
    Peer(
        "no time, four goals of a linear program",
        "Lexicographic: knapsack_time_limit",
        lambda: linear(UNITS, "max", AT_MOST_TWO, pyo.Reals, (0, 1), [0, 0, 0, 1000]),
        "time-limit",
        options=NO_TIME,
    ),
    Peer(
        "unbounded",
        "all algorithms, and the model's own test: unbounded",
        lambda: plain("max"),
        "unbounded",
    ),
    Peer(
        "unbounded in the second goal",
        "EpsilonConstraint: unbounded_second",
        unbounded_second,
        "unbounded",
    ),
    Peer(
        "infeasible",
        "all algorithms, and the model's own test: infeasible",
        lambda: plain("min", [([1, 1], "<=", -1)]),
        "infeasible",
    ),
    Peer(
        "no largest values",
        "DominguezRios, KirlikSayin, Sandwiching, TambyVanderpooten: no_bounding_box",
        lambda: plain("min"),
        "front",
        [[0, 0]],
        why="they need a box around all vectors and end as unbounded; placeopt needs none",
    ),
    Peer(
        "single point",
        "Chalmet: single_point",
        lambda: plain("min", [([1, 0], "==", 1), ([0, 1], "==", 1)], (None, None)),
        "front",
        [[1, 1]],
    ),
    Peer(
        "variables as goals",
        "all algorithms: vector_of_variables_objective",
        lambda: linear(np.eye(2).tolist(), "min", [([1, 1], ">=", 1)]),
        "front",
        [[0, 1], [1, 0]],
        why="they state the status alone",
    ),
    Peer(
        "four goals where two are served",
        "Chalmet, EpsilonConstraint: too_many_objectives",
        lambda: linear(UNITS, "max", (), pyo.Reals, (0, 1)),
        "front",
        [[1, 1, 1, 1]],
        why="they refuse more than two goals; placeopt takes any number",
    ),
    Peer(
        "three goals where two are served",
        "Dichotomy: three_objective",
        lambda: linear([[1], [-1], [2]], "max", (), pyo.Reals, constants=[0, 0, 2]),
        "unbounded",
        why="they refuse more than two goals; placeopt finds that x has no bounds",
    ),
    Peer(
        "linear program, 2 goals",
        "Dichotomy, GeneralDichotomy: moi_bolp_1",
        lambda: bolp([[2, 1], [1, 3]], constants=[1, 0]),
        "extreme",
        [[2, 3], [2.5, 2], [3.25, 1.75]],
    ),
    Peer(
        "linear program, 2 goals, max",
        "Dichotomy, GeneralDichotomy: moi_bolp_1_maximize",
        lambda: bolp([[-2, -1], [-1, -3]], "max", [0, 0.5]),
        "extreme",
        [[-2.25, -1.25], [-1.5, -1.5], [-1, -2.5]],
    ),
    Peer(
        "linear program, 2 goals, reversed",
        "Dichotomy, GeneralDichotomy: moi_bolp_1_reversed",
        lambda: bolp([[1, 3], [2, 1]]),
        "extreme",
        [[1.75, 2.25], [2, 1.5], [3, 1]],
    ),
    Peer(
        "linear program, 2 goals, then one",
        "Dichotomy, GeneralDichotomy: moi_bolp_1_scalar",
        lambda: bolp([[2, 1]]),
        "front",
        [[1]],
    ),
    Peer(
        "transport",
        "Dichotomy, GeneralDichotomy: bicriteria_transportation_nise",
        transport,
        "extreme",
        [[143, 265], [156, 200], [176, 175], [186, 171], [208, 167]],
    ),
    Peer(
        "linear program of lectures",
        "Sandwiching: molp_1",
        lambda: linear([[3, 1], [-1, -2]], "min", MOLP_1, pyo.NonNegativeReals),
        "extreme",
        [[0, 0], [3, -6], [12, -9]],
    ),
    Peer(
        "linear program of an exercise",
        "Sandwiching: molp_2",
        lambda: linear([[3, -2], [-1, 2]], "max", MOLP_2, pyo.NonNegativeReals),
        "extreme",
        [[-3, 9], [4, 8], [8, 4], [10, -2]],
    ),
    Peer(
        "ideal point",
        "the model's own test: ideal_point",
        lambda: linear([[3, 1], [-1, -2]], "min", MOLP_1, pyo.NonNegativeReals),
        "ideal",
        [0, -9],
    ),
    Peer(
        "linear program on a grid",
        "DominguezRios: lp",
        lambda: linear([[3, 1], [-1, -2]], "min", MOLP_1, pyo.NonNegativeReals),
        "extreme",
        [[0, 0], [3, -6], [12, -9]],
        why="they state more than one point; placeopt gives the extreme ones",
    ),
    Peer(
        "knapsack of 17, extreme points",
        "Dichotomy, GeneralDichotomy: biobjective_knapsack",
        lambda: linear(PROFITS_17, "max", FITS_17),
        "of front",
        EXTREME_17,
    ),
    Peer(
        "knapsack of 17, with a constant",
        "EpsilonConstraint: biobjective_knapsack",
        lambda: linear(PROFITS_17, "max", FITS_17, constants=[1, 0]),
        "front",
        [[a + 1, b] for a, b in FRONT_17],
    ),
    Peer(
        "knapsack of 17",
        "EpsilonConstraint: biobjective_knapsack_atol",
        lambda: linear(PROFITS_17, "max", FITS_17),
        "front",
        FRONT_17,
    ),
    Peer(
        "knapsack of 17, steps of 10",
        "EpsilonConstraint: biobjective_knapsack_atol_large",
        lambda: linear(PROFITS_17, "max", FITS_17),
        "front",
        EXTREME_17,
        {"gap": {"f0": 10}},
        why="what they call a step is a gap here",
    ),
    Peer(
        "knapsack of 17, min",
        "EpsilonConstraint: biobjective_knapsack_min",
        lambda: linear(negated(PROFITS_17), "min", FITS_17),
        "front",
        negated(FRONT_17),
    ),
    Peer(
        "knapsack of 17, three points",
        "EpsilonConstraint: biobjective_knapsack_min_solution_limit",
        lambda: linear(PROFITS_17, "max", FITS_17),
        "some",
        FRONT_17,
        {"max_points": 3},
        why="three points of the front, but not all the same ones",
    ),
    Peer(
        "no goals",
        "the model's own test: invalid_model",
        pyo.ConcreteModel,
        "refused",
    ),
    Peer(
        "portfolio",
        "Dichotomy, EpsilonConstraint, GeneralDichotomy: quadratic",
        portfolio,
        "some",
        10,
        {"gap": {"loss": 0.005}, "max_points": 10},
        why="they ask Ipopt for some ten points; placeopt needs a gap",
    ),
    Peer(
        "ratio with a root",
        "EpsilonConstraint: poor_numerics, vectornonlinearfunction",
        sharpe,
        "refused",
        why="goals are linear or convex and quadratic here; they ask Ipopt",
    ),
    Peer(
        "assignment of 4, extreme points",
        "GeneralDichotomy: lap",
        lambda: assignment(LAP, "min"),
        "of front",
        4,
    ),
    Peer(
        "assignment of 5, 4 goals, extreme points",
        "GeneralDichotomy: lap_2",
        lambda: assignment(LAP_2, "min"),
        "of front",
        19,
        is_slow=True,
    ),
    Peer(
        "three goals in any order",
        "Lexicographic: knapsack_default",
        lambda: linear(UNITS[:3], "max", AT_MOST_TWO, pyo.Reals, (0, 1)),
        "extreme",
        [[0, 1, 1], [1, 0, 1], [1, 1, 0]],
    ),
    Peer(
        "five goals in any order",
        "Lexicographic: knapsack_5_objectives",
        lambda: linear([*np.eye(4).tolist(), [1] * 4], "max", AT_MOST_TWO, pyo.Reals, (0, 1)),
        "extreme",
        [
            [0, 0, 1, 1, 2],
            [0, 1, 0, 1, 2],
            [0, 1, 1, 0, 2],
            [1, 0, 0, 1, 2],
            [1, 0, 1, 0, 2],
            [1, 1, 0, 0, 2],
        ],
    ),
    *(
        Peer(
            f"four goals one after the other, {words}",
            f"Lexicographic: {tests}",
            partial(linear, rows, sense, AT_MOST_TWO, pyo.Reals, (0, 1), constants=constants),
            "point",
            [point],
            {"tolerance": tolerance},
            placeopt.ask.lexicographic,
        )
        for words, tests, rows, sense, constants, tolerance, point in (
            (
                "a tenth of room",
                "knapsack, caching_optimizer_knapsack",
                TURNED,
                "max",
                [0, 0, 0, 1000],
                {"f0": 0.1},
                [0.9, 1, 0.1, 1000],
            ),
            (
                "min",
                "knapsack_min",
                negated(TURNED),
                "min",
                [],
                {"f0": 0.1},
                [-0.9, -1, -0.1, 0],
            ),
            ("no room", "knapsack_one_solution", TURNED, "max", [], 0.0, [1, 1, 0, 0]),
        )
    ),
    Peer(
        "four goals, two of them in a weighted sum",
        "Hierarchical: knapsack",
        partial(
            linear,
            [[1, 0, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 1, 0, 0]],
            "max",
            AT_MOST_TWO,
            pyo.Reals,
            (0, 1),
            constants=[0, 0, 0, 1000],
        ),
        "other",
        [[0.9, 0.9, 1.1, 1000]],
        {"order": ["f0", {"f1": 0.5, "f2": 0.5}, "f3"], "tolerance": {"f0": 0.1}},
        placeopt.ask.lexicographic,
        why="they limit each goal of a sum, by the tolerance of the goal that has its place among "
        "all; placeopt keeps the sum, which is 1.05 instead of 1",
    ),
    *(
        Peer(
            name,
            f"DominguezRios, EpsilonConstraint, KirlikSayin, TambyVanderpooten: vOptLib_{name}",
            two_knapsack(name),
            "front",
            DATA[name]["front"],
            is_slow=name in ("2KP50-50", "2KP100-50"),
        )
        for name in ("2KP50-11", "2KP50-50", "2KP50-92", "2KP100-50")
    ),
]


# -- judging ---------------------------------------------------------------------------------------

#: Statuses of fronts that lack nothing they could have.
WHOLE = {"complete", "extreme", "grid"}


def judged(peer: Peer, **options: Any) -> tuple[str, bool, int]:
    """Return placeopt's answer in words, whether it is what is stated, and the calls it took."""
    try:
        front = peer.ask(peer.build(), **peer.options, **options)
    except PlaceoptError as error:
        refused = {"unbounded": "is unbounded", "refused": "not linear|no goals"}.get(peer.stated)
        return str(error).split(";")[0], bool(refused and re.search(refused, str(error))), 0
    status, calls = front.runs[0].parameters["status"], front.runs[0].solver_calls
    said = f"{len(front)} points, {status}"
    if peer.stated in ("infeasible", "time-limit"):
        return said, status == peer.stated and not len(front), calls
    values = front.values.tolist()
    if peer.stated == "of front":
        values = extreme_of(front.values, front.objectives[0].sign)
        said += f"; {len(values)} of them extreme"
    if peer.stated == "ideal":
        return said, front.ideal.tolist() == peer.values, calls
    if peer.stated == "some":
        points = peer.values if isinstance(peer.values, list) else values
        count = 3 if points is peer.values else peer.values
        return said, len(values) == count and all(v in points for v in values), calls
    if peer.stated == "other":
        return f"{values[0]}, {status}", values != peer.values, calls
    if peer.stated == "point":
        said = f"{values[0]}, {status}"
    if isinstance(peer.values, int):
        return said, status in WHOLE and len(values) == peer.values, calls
    return said, status in WHOLE and sorted(values) == sorted(peer.values), calls


def extreme_of(values: np.ndarray, sign: float) -> list[list[float]]:
    """Return the vectors that a weighted sum singles out; all goals have the same sense."""

    def least(weights: np.ndarray) -> Found:
        sums = np.round(sign * values @ weights, 9)
        best = np.lexsort((sign * values.sum(axis=1), sums))[0]
        return Found(tuple((sign * values[best]).tolist()))

    found = extreme_points(least, values.shape[1])
    return (sign * np.array([point.values for point in found.points])).tolist()
