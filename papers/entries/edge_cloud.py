"""P. Soumplis et al., SN Computer Science 2024: edge-cloud."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

from papers.entry import Entry, Paper
from papers.measures import edge_cloud_agents
from papers.measures import edge_cloud_figures as figures

_TABLE, _AXIS, _FIGURES = (
    f"papers/results/edge_cloud_{name}.md" for name in ("table4", "load", "figures")
)
_REGIME = (
    "The paper's Tables 2 to 4 are missing in its public text. Ours is the regime of little demand "
    "(`--size demand=3`), chosen on seeds 1 and 2. It is easy: on the two seeds measured greedy "
    "itself finds the best known value. On an axis of demand (papers/results/edge_cloud_load.md) "
    "the claims end between demand 3 and 8; at load .4 greedy is 48 to 51 % above, rollout 14 to "
    "43 %."
)


_GAPS = (
    "The demand of Table 4 is not printed: 6 here, on seeds that it was not chosen on. With 3 "
    "greedy itself finds the best known plan, so that the claims are empty; at load .4 greedy is "
    "48 to 51 % above (papers/results/edge_cloud_load.md). Held: the mean of each size, since the "
    "table has one number a size; single instances of 50 applications are farther off, and with "
    "100 and more the same demand is hardly contended. So both claims hang on a number that is not "
    "printed."
)
_NEAR = (
    "The paper's Tables 2 and 3 are missing; costs of `profile=paper` are fitted to these four "
    "numbers within the ranges of the text, and data come from access points beside the near edge, "
    "as the paper says of some. Met: within a tenth of the printed number, of the 5 % within 3 "
    "points, on every seed. With data from a node that can compute (`profile=stated`) no demand "
    "gives all four."
)
_ALL = (
    "All applications ahead, as in the paper, but 100 on the basic topology, near edge contended. "
    "With the paper's 1,000 on the extended one the rollout here looks five ahead; at little "
    "demand greedy finds the best known plan there, so that nothing is left to gain. Demand and w "
    "of the figure are not printed."
)


def _fit(key: str) -> Callable[[Any], str]:
    """Return a function: a number of Figs 3 and 5 on every seed."""
    return lambda r: ", ".join(f"{one[key]:.1%}" for one in r["fit"])


def _fits(key: str, printed: float, within: float) -> Callable[[Any], bool]:
    return lambda r: all(abs(one[key] - printed) <= within for one in r["fit"])


def _sizes(result: Any, form: Callable[[Any], str], name: str) -> str:
    return ", ".join(form(v) for v in result[name])


def _growth(result: Any, name: str) -> list[float]:
    """Return the exponents of the time by applications, from each size to the next."""
    sizes, seconds = result["sizes"], result["seconds"][name]
    pairs = zip(itertools.pairwise(sizes), itertools.pairwise(seconds), strict=True)
    return [math.log(late / early) / math.log(more / few) for (few, more), (early, late) in pairs]


def _overall(result: Any, name: str) -> float:
    sizes, seconds = result["sizes"], result["seconds"][name]
    return math.log(seconds[-1] / seconds[0]) / math.log(sizes[-1] / sizes[0])


def _gamma(result: Any) -> str:
    shown = []
    for load in result["gamma"]:
        mean, half = figures.gamma_worth(result, float(load))
        shown.append(f"load {load}: {mean:.1%} ± {half:.1%}")
    return "; ".join(shown)


def _greedy_like(result: Any) -> list[float]:
    """Return by what share gamma 0 is above greedy, mean over seeds, by load."""
    return [
        sum(row["0"] / row["greedy"] - 1 for row in rows) / len(rows)
        for rows in result["gamma"].values()
    ]


def _gaps(result: Any, name: str) -> str:
    """Return the mean gap of every size to the best known plan, and the largest."""
    return "; ".join(
        f"{row['applications']} applications {row[name]['mean']:.1%} (at most "
        f"{row[name]['most']:.1%})"
        for row in result["rows"]
    )


def _milp(result: Any, key: str) -> str:
    return ", ".join(
        "none" if row["milp"][key] is None else f"{row['milp'][key]:.4g}" for row in result["rows"]
    )


def _curve(result: Any, figure: str) -> str:
    values = [row[2] for row in result["contended"][figure]]
    return ", ".join("no plan" if v is None else f"{v:.1f}" for v in values)


ENTRIES = (
    Entry("Table 1", "Notation.", "a list", "models/edge_cloud/README.md.", nothing=True),
    Entry(
        "(1)-(7)",
        "The integer program.",
        "equations",
        "Method `epsilon-constraint` over models.edge_cloud: printed and compact forms.",
        nothing=True,
    ),
    Entry(
        "Table 2",
        "Nodes of the layers: cores, memory, cost, networking cost.",
        "cloud 400-600 cores, far 40-80, near 1-8; costs within [1, 10]",
        "Ranges of the text; the table itself is missing in the text that we have.",
        nothing=True,
    ),
    Entry(
        "Table 3",
        "Delays between layers.",
        "a table",
        "Missing in the text that we have; ours rise from near to cloud.",
        nothing=True,
    ),
    Entry("Fig. 1", "The greedy rule.", "a flowchart", "Method `greedy`.", nothing=True),
    Entry("Fig. 2", "Choices of the rollout.", "a drawing", "Method `rollout`.", nothing=True),
    Entry(
        "claim, sec. MILP: size",
        "Variables V A I + 2 A; rows A I + A + A I^2 V^2 + 2 V + V A I.",
        "formula",
        "The program as printed. Its (3) has rows for the pairs of microservices that talk, where "
        "the formula counts all pairs; of the 2 A one A is sums, not variables. The compact form, "
        "which the exact methods solve, has fewer rows but more columns than the formula.",
        measure="edge_cloud_sizes",
        ours=lambda r: "; ".join(
            f"{name}: {size['rows']:,} rows, {size['columns']:,} columns"
            for name, size in r["forms"].items()
        ),
        holds=lambda r: all(
            r["forms"]["as printed"][key] <= r["forms"]["formula"][key]
            for key in ("rows", "columns")
        ),
        whose="ours",
        page="papers/results/edge_cloud_sizes.md",
    ),
    Entry(
        "claim, sec. greedy: complexity",
        "O(A I V^2) at worst; linear in the workload.",
        "in words",
        "The exponent of the time by applications, 50 to 300. That the nodes count squared is the "
        "worst case, in which every first node is tried: nothing here tests it.",
        measure="edge_cloud_table4",
        ours=lambda r: f"time grows with the power {_overall(r, 'greedy, restart'):.2f}",
        holds=lambda r: _overall(r, "greedy, restart") <= 1.2,
        whose="ours",
        page=_TABLE,
    ),
    Entry(
        "(8)",
        "The choice of the rollout: the immediate cost and gamma times the greedy rule's.",
        "an equation",
        "Method `rollout`, parameters `gamma` and `width`; tests/rollout holds it to the rule.",
        nothing=True,
    ),
    Entry(
        "claim, sec. rollout: agents one by one",
        "One agent a microservice leaves V I choices of an application, not V to the power I.",
        "in words",
        "So decides the rollout: `width` nodes for each microservice in turn.",
        nothing=True,
    ),
    Entry(
        "claim, sec. rollout: in a distributed manner",
        "Agents provision resources in a distributed manner, which speeds up the process.",
        "in words",
        "Agents are processes that simulate their share of each decision and send two messages for "
        "it: the plan is that of one process. Held to the plan and to a shorter time than one "
        "process of the same form takes. The compiled rollout in one process is faster than any.",
        measure="edge_cloud_agents",
        ours=lambda r: "; ".join(
            f"{name}: {row['seconds']:.2f} s"
            + (f", {row['messages']:,.0f} messages" if "messages" in row else "")
            for name, row in r["rows"].items()
        ),
        holds=lambda r: (
            edge_cloud_agents.same(r)
            and min(row["seconds"] for name, row in r["rows"].items() if name.isdigit())
            < r["rows"]["one process"]["seconds"]
        ),
        whose="ours",
        page="papers/results/edge_cloud_agents.md",
    ),
    Entry(
        "Table 4: cost",
        "Weighted sum at w = .01 of greedy, rollout and MILP, 50 to 300 applications.",
        "18 numbers, missing in the text that we have",
        _REGIME,
        cannot="the table is missing in the public text.",
        measure="edge_cloud_table4",
        ours=lambda r: f"MILP {_milp(r, 'value')} at {r['sizes']}; gaps in the page",
        page=_TABLE,
        derived=("18",),
    ),
    Entry(
        "Table 4: time",
        "Seconds of the same.",
        "18 numbers, missing in the text that we have",
        cannot="the table is missing in the public text.",
        why="Compiled kernels; CPU seconds. HiGHS had 20 s by the clock of a busy machine.",
        measure="edge_cloud_table4",
        ours=lambda r: (
            "; ".join(
                f"{name} {_sizes(r['seconds'], '{:.3g}'.format, name)}" for name in r["seconds"]
            )
            + f"; MILP {_milp(r, 'cpu_seconds')} s"
        ),
        page=_TABLE,
        derived=("18",),
    ),
    Entry(
        "claim, Table 4: greedy",
        "The greedy rule is at most 10 % above the optimum.",
        "10 %",
        _GAPS,
        measure="edge_cloud_gaps",
        ours=lambda r: _gaps(r, "greedy"),
        holds=lambda r: max(row["greedy"]["mean"] for row in r["rows"]) <= 0.10,
        whose="open",
        page="papers/results/edge_cloud_gaps.md",
    ),
    Entry(
        "claim, Table 4: rollout",
        "The rollout is within 4 % of the optimum in all cases.",
        "4 %",
        _GAPS,
        measure="edge_cloud_gaps",
        ours=lambda r: _gaps(r, "rollout"),
        holds=lambda r: max(row["rollout"]["mean"] for row in r["rows"]) <= 0.04,
        whose="open",
        figure="papers/results/edge_cloud_load.png",
        page="papers/results/edge_cloud_gaps.md",
    ),
    Entry(
        "claim, Table 4: greedy's time",
        "Greedy takes milliseconds.",
        "order of ms",
        "",
        measure="edge_cloud_table4",
        ours=lambda r: f"at most {1000 * max(r['seconds']['greedy']):.1f} ms",
        holds=lambda r: max(r["seconds"]["greedy"]) < 0.1,
        page=_TABLE,
    ),
    Entry(
        "claim, Table 4: rollout's time",
        "The rollout's time grows polynomially with the workload.",
        "in words",
        "The exponent from each size to the next; an exponential growth would let it rise.",
        measure="edge_cloud_table4",
        ours=lambda r: "powers " + ", ".join(f"{v:.2f}" for v in _growth(r, "rollout")),
        holds=lambda r: _growth(r, "rollout")[-1] <= _growth(r, "rollout")[0] + 0.5,
        whose="ours",
        page=_TABLE,
    ),
    Entry(
        "claim, Table 4: MILP's limit",
        "At 250 the MILP ends at its limit, at 300 without a plan.",
        "no plan at 300",
        "HiGHS had 20 s by the clock of a busy machine, about 4 CPU s; unknown means no plan by "
        "then. Ours is the compact form.",
        measure="edge_cloud_table4",
        ours=lambda r: ", ".join(f"{x['applications']}: {x['milp']['status']}" for x in r["rows"]),
        cannot="the limit is not printed, and the machine and the solver are others.",
        page=_TABLE,
    ),
    Entry(
        "Fig. 3",
        "Latency and cost by weight w.",
        "a front",
        "Delays and costs of the layers are ours: `profile=paper`.",
        measure="edge_cloud_figures",
        ours=lambda r: f"{len(r['paper']['sweep'])} weights, 2 regimes",
        figure="papers/results/edge_cloud_figures.png",
        page=_FIGURES,
    ),
    Entry(
        "claim, Fig. 3: latency",
        "Latency falls by about 80 % from w = 1 to w = 0.",
        "about 80 %",
        _NEAR,
        measure="edge_cloud_figures",
        ours=_fit("latency falls"),
        holds=_fits("latency falls", 0.8, 0.08),
        whose="ours",
        page=_FIGURES,
    ),
    Entry(
        "claim, Fig. 3: cost",
        "Cost rises by almost 160 %.",
        "almost 160 %",
        _NEAR,
        measure="edge_cloud_figures",
        ours=_fit("cost rises"),
        holds=_fits("cost rises", 1.6, 0.16),
        whose="ours",
        page=_FIGURES,
    ),
    Entry(
        "Fig. 4",
        "Microservices of each layer by w.",
        "bars",
        "",
        measure="edge_cloud_figures",
        ours=lambda r: (
            "w = .001: "
            + ", ".join(f"{k} {v}" for k, v in r["paper"]["sweep"][0]["layers"].items())
            + "; w = .999: "
            + ", ".join(f"{k} {v}" for k, v in r["paper"]["sweep"][-1]["layers"].items())
        ),
        page=_FIGURES,
    ),
    Entry(
        "Fig. 5",
        "Operating and networking cost by w.",
        "bars",
        "",
        measure="edge_cloud_figures",
        ours=lambda r: (
            "network's share " + ", ".join(f"{x['network']:.0%}" for x in r["paper"]["sweep"])
        ),
        page=_FIGURES,
    ),
    Entry(
        "claim, Fig. 5: cloud",
        "Networking is about 49 % of the cost when cost is the goal.",
        "49 %",
        _NEAR,
        measure="edge_cloud_figures",
        ours=_fit("network in the cloud"),
        holds=_fits("network in the cloud", 0.49, 0.049),
        page=_FIGURES,
    ),
    Entry(
        "claim, Fig. 5: edge",
        "Networking is 5 % of the cost when latency is the goal.",
        "5 %",
        _NEAR,
        measure="edge_cloud_figures",
        ours=_fit("network at the edge"),
        holds=_fits("network at the edge", 0.05, 0.03),
        page=_FIGURES,
    ),
    Entry(
        "Fig. 6",
        "Objective and time by beta.",
        "curves",
        "Five applications ahead, where the paper looks at all; one instance.",
        measure="edge_cloud_figures",
        ours=lambda r: _curve(r, "Fig. 6"),
        page=_FIGURES,
    ),
    Entry(
        "claim, Fig. 6",
        "A larger beta gives better plans and takes longer.",
        "in words",
        _ALL,
        measure="edge_cloud_figures",
        ours=lambda r: (
            f"least beta {figures.worth(r, 'Fig. 6'):+.1%}, largest {figures.longer(r):.1f} times "
            f"as long; 1,000 applications, contended: {r['contended']['beta effect']:+.2%}"
        ),
        holds=lambda r: figures.worth(r, "Fig. 6") > 0 and figures.longer(r) > 1,
        page=_FIGURES,
    ),
    Entry(
        "Fig. 7",
        "Objective over time by gamma.",
        "curves",
        "Five applications ahead, where the paper looks at all; one instance.",
        measure="edge_cloud_figures",
        ours=lambda r: _curve(r, "Fig. 7"),
        page=_FIGURES,
    ),
    Entry(
        "claim, Fig. 7",
        "Between gamma 0 and 1 lie almost 15 % of the objective.",
        "almost 15 %",
        "All applications ahead, as in the paper, but 100 on the basic topology; ten seeds. The "
        "demand of the figure is not printed: the axis has it. Met: within 3 points at load .3.",
        measure="edge_cloud_figures",
        ours=_gamma,
        holds=lambda r: abs(figures.gamma_worth(r, figures.GAMMA_LOAD)[0] - 0.15) <= 0.03,
        whose="ours",
        page=_FIGURES,
    ),
    Entry(
        "claim, Fig. 7: gamma 0",
        "With gamma 0 the rollout is close to the greedy rule.",
        "in words",
        "Held to 1 % of the sum, mean over ten seeds, at every load.",
        measure="edge_cloud_figures",
        ours=lambda r: ", ".join(f"{v:+.2%}" for v in _greedy_like(r)) + " above greedy",
        holds=lambda r: max(map(abs, _greedy_like(r))) <= 0.01,
        whose="ours",
        page=_FIGURES,
    ),
)

PAPER = Paper(
    "edge_cloud",
    "P. Soumplis, G. Kontos, P. Kokkinos, A. Kretsis, S. Barrachina-Muñoz, R. Nikbakht, "
    "J. Baranda, M. Payaró, J. Mangues-Bafalluy, E. Varvarigos: Performance Optimization Across "
    "the Edge-Cloud Continuum: A Multi-agent Rollout Approach for Cloud-Native Application "
    "Workload Placement",
    "SN Computer Science 2024",
    "edge-cloud",
    ENTRIES,
)
