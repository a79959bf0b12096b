"""N. Di Cicco et al., CNSM 2024: temporal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from papers.entry import Entry, Paper

_RESULTS = "papers/results/cnsm_table_v.md"
_WHY = (
    "The published code leaves machines too small and starts beyond the horizon unpunished: none "
    "of its points is feasible (0 of 131 and 0 of 142, checked outside this repository). Here "
    "genes are limited to types that fit. The rule of the reference point is that of the published "
    "code: 1.1 times the worst of the fronts compared."
)
_ORDER = (
    f"{_WHY} So the paper's order is that of infeasible plans, of one run on one instance; here "
    "all three end far below what moead reaches."
)
_AS = "{} as published"
_THREE = ("NSGA-II", "NSGA-III", "MSPSO")


def _row(result: Any, figure: str, name: str) -> Any:
    return result["sets"][figure]["rows"][_AS.format(name)]


def _of_three(figure: str, key: str, form: str = ".4g") -> Callable[[Any], str]:
    """Return a function: our values of the paper's three algorithms, and of moead."""

    def shown(result: Any) -> str:
        values = [_row(result, figure, name)[key] for name in _THREE]
        best = result["sets"][figure]["rows"]["moead"][key]
        return " ".join(f"{v:{form}}" for v in values) + f"; moead {best:{form}}"

    return shown


def _all_sets(key: str, form: str) -> Callable[[Any], str]:
    def shown(result: Any) -> str:
        return "; ".join(
            " ".join(f"{_row(result, figure, name)[key]:{form}}" for name in _THREE)
            for figure in result["sets"]
        )

    return shown


def _ranked(result: Any, figure: str, key: str = "HV rule") -> list[str]:
    return sorted(_THREE, key=lambda name: -_row(result, figure, name)[key])


def _seconds(result: Any) -> str:
    """Return seconds of jMetalPy where it ran, of the compiled ones, and of moead."""
    rows = result["sets"]["Fig. 5"]["rows"]
    shown = [f"{name} {row['seconds']:.1f}" for name, row in rows.items() if "jMetalPy" in name]
    shown += [f"{name} {_row(result, 'Fig. 5', name)['seconds']:.1f}" for name in _THREE]
    return ", ".join(shown) + f"; moead {rows['moead']['seconds']:.1f} CPU s, judged"


def _order(figure: str) -> Callable[[Any], str]:
    """Return a function: the paper's three by hypervolume; by jMetalPy itself where it ran."""

    def shown(result: Any) -> str:
        rows = result["sets"][figure]["rows"]
        by_itself = {n: rows[n]["HV rule"] for n in rows if n.endswith("by jMetalPy")}
        best = sorted(by_itself, key=lambda n: -by_itself[n])
        orders = [" > ".join(_ranked(result, figure)), " > ".join(best)]
        return "; ".join(order for order in orders if order)

    return shown


def _ends(result: Any) -> str:
    """Return the median latency and cost of the fronts of Fig. 4a."""
    medians = [_row(result, "Fig. 4a", name)["median"] for name in _THREE]
    return "median latency, cost: " + "; ".join(f"{a:.0f} ms, {b:.0f} USD" for a, b in medians)


def _different(result: Any) -> bool:
    nsga2, nsga3, swarms = (_row(result, "Fig. 4a", name)["median"] for name in _THREE)
    return max(nsga2[0], nsga3[0]) < swarms[0] and min(nsga2[1], nsga3[1]) > swarms[1]


def _front(figure: str) -> Callable[[Any], str]:
    return _of_three(figure, "points", ".0f")


def _exact(result: Any) -> str:
    model, ours = result["the paper's model by HiGHS"], result["bin-plans"]
    return (
        f"model: {model['status']} after {model['cpu_seconds']:.0f} CPU s; "
        f"bin-plans: {ours['status']} after {ours['cpu_seconds']:.1f} CPU s"
    )


ENTRIES = (
    Entry(
        "Table I", "Sets and parameters.", "notation", "models/temporal/README.md.", nothing=True
    ),
    Entry("Table II", "Variables.", "notation", "models/temporal/README.md.", nothing=True),
    Entry(
        "(1)-(18)",
        "The integer program.",
        "equations",
        "models/temporal/README.md names four misprints; tests hold model and referee together.",
        nothing=True,
    ),
    Entry(
        "(19)",
        "Sparsity of a front.",
        "an equation",
        "`sparsity` in papers/cnsm.py.",
        nothing=True,
    ),
    Entry(
        "claim, sec. IV: Milan or Mumbai",
        "For requests from EU-SOUTH-1, AP-SOUTH-1 is 1.7x cheaper and 43x farther; spot there is "
        "4x cheaper, at 10 % interruption.",
        "1.7x, 43x, 4x",
        "1.7 and 43 follow from Tables III and IV. 4x does not: by the paper's own Table III spot "
        "is 10 times cheaper for two sizes and dearer for the third.",
        measure="cnsm_prices",
        ours=lambda r: (
            f"{r['rate']['t4g.large']:.2f}x, {r['latency']:.1f}x, "
            + ", ".join(f"{v:.2f}x" for v in r["spot"].values())
        ),
        holds=lambda r: (
            abs(r["rate"]["t4g.large"] - 1.7) < 0.05
            and abs(r["latency"] - 43) < 0.5
            and any(abs(v - 4) < 0.5 for v in r["spot"].values())
        ),
        whose="paper",
        page="",
    ),
    Entry(
        "Table III",
        "EC2 offers and prices.",
        "18 offers, 3 prices",
        "`aws-50` has them as printed; `aws-50-corrected` mends two prices.",
        nothing=True,
        derived=(
            "18",
            "3",
        ),
    ),
    Entry("Table IV", "Latencies.", "6 x 6", "`aws-50` has them.", nothing=True, derived=("6",)),
    Entry("Fig. 1", "A request in several clusters.", "a drawing", "A drawing.", nothing=True),
    Entry(
        "Fig. 2",
        "A schedule on instances.",
        "a drawing",
        "`placeopt plot FRONT --point K` draws any plan so.",
        nothing=True,
    ),
    Entry(
        "Fig. 3",
        "The vector of starts and instances, and its next-fit decoder.",
        "a drawing",
        "`encoding=published` of nsga2, nsga3, mspso and moead; the page says what encoding, "
        "operators and seeds are each worth.",
        page="papers/results/cnsm_ablation.md",
        nothing=True,
    ),
    Entry(
        "claim, sec. IV-A: ten requests",
        "One goal alone with 10 requests of 1 or 2 replicas: hundreds of seconds with HiGHS.",
        "hundreds of s",
        "With one machine of each offer, a smaller model than the paper's. Met: not proven within "
        "100 s. Bin plans prove the whole model's least cost.",
        measure="cnsm_ten_requests",
        ours=_exact,
        holds=lambda r: r["the paper's model by HiGHS"]["status"] != "optimal",
        page="papers/results/cnsm_ten_requests.md",
    ),
    Entry(
        "Fig. 4a",
        "Fronts of latency and cost: points.",
        "3 fronts",
        _WHY,
        measure="cnsm_table_v",
        ours=_front("Fig. 4a"),
        figure="papers/results/cnsm_table_v.png",
        page=_RESULTS,
        derived=("3",),
    ),
    Entry(
        "Fig. 4b",
        "Fronts of cost and interruption: points.",
        "3 fronts",
        "As of Fig. 4a.",
        measure="cnsm_table_v",
        ours=_front("Fig. 4b"),
        page=_RESULTS,
        derived=("3",),
    ),
    Entry(
        "Fig. 5",
        "Fronts of three goals: points.",
        "3 fronts",
        "As of Fig. 4a.",
        measure="cnsm_table_v",
        ours=_front("Fig. 5"),
        page=_RESULTS,
        derived=("3",),
    ),
    Entry(
        "Table V: HV",
        "Hypervolume of NSGA-II, NSGA-III, MSPSO for three choices of goals.",
        "64264 62477 38293; 15.18 15.34 21.47; 3694 4048 3930",
        "Raw volumes depend on the reference point, which the rule takes from the fronts "
        f"themselves. {_WHY}",
        authors="plot_2dpf.py, plot_3dpf.py: reference 1.1 x the worst of the three fronts",
        measure="cnsm_table_v",
        ours=_all_sets("HV rule", ".5g"),
        page=_RESULTS,
    ),
    Entry(
        "Table V: S(F)",
        "Sparsity of the same fronts.",
        "3452 5730 2893; 1634 1276 887; 203.29 123.79 166.77",
        "As of HV.",
        measure="cnsm_table_v",
        ours=_all_sets("sparsity", ".4g"),
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-B: seconds",
        "Mean over 100 instances, 50,000 iterations: 24 s for NSGA, about 110 s for MSPSO.",
        "24, 24, 110 s (MacBook Pro M3)",
        "Another machine, and compiled decoders; one instance. The mean over generated instances "
        "is begun: `make papers ONLY=cnsm_instances` goes on to 100.",
        measure="cnsm_table_v",
        ours=_seconds,
        cannot="another machine, and decoders that are compiled here.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-C: different fronts",
        "With latency and cost NSGA finds low latency, MSPSO low cost.",
        "in words",
        f"{_ORDER} NSGA finds the low latency, as printed; but NSGA-II's median cost is lower too.",
        measure="cnsm_table_v",
        ours=_ends,
        holds=_different,
        whose="paper against its code",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-C: NSGA-II best in latency and cost",
        "With latency and cost NSGA-II has the best front.",
        "Table V: HV 64264, 62477, 38293",
        "",
        measure="cnsm_table_v",
        ours=_order("Fig. 4a"),
        holds=lambda r: _ranked(r, "Fig. 4a")[0] == "NSGA-II",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-C: MSPSO best in cost and interruption",
        "With cost and interruption MSPSO strongly dominates both NSGA.",
        "Table V: HV 21.47 over 15.34",
        _ORDER,
        measure="cnsm_table_v",
        ours=_order("Fig. 4b"),
        holds=lambda r: _ranked(r, "Fig. 4b")[0] == "MSPSO",
        whose="paper against its code",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-D: points",
        "Fronts of three goals have several tens of points: NSGA-II, NSGA-III, MSPSO.",
        "150, 112, 100",
        "Held to 30 points each: 150 and 100 are sizes of a population and of an archive. Ours "
        "keep every non-dominated point met; jMetalPy's own are in the table.",
        measure="cnsm_table_v",
        ours=_front("Fig. 5"),
        holds=lambda r: min(_row(r, "Fig. 5", name)["points"] for name in _THREE) >= 30,
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-D: NSGA-III best, MSPSO second",
        "With three goals NSGA-III is best in hypervolume, MSPSO second.",
        "Table V: HV 4048, 3930, 3694",
        f"{_ORDER} By jMetalPy itself NSGA-III is ahead of NSGA-II, as printed; MSPSO is third.",
        measure="cnsm_table_v",
        ours=_order("Fig. 5"),
        holds=lambda r: _ranked(r, "Fig. 5")[:2] == ["NSGA-III", "MSPSO"],
        whose="paper against its code",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-C: ensemble",
        "Fronts of several algorithms together are better than each.",
        "recommended, not measured",
        "It cannot be worse with the runs of all three; the paper prints no number.",
        measure="cnsm_instances",
        ours=lambda r: (
            f"{r['rows']['the three together']['share'][0]:.4f} of the box against "
            + ", ".join(f"{r['rows'][name]['share'][0]:.4f}" for name in r["wins"])
            + f"; mean of {r['instances']} instances"
        ),
        holds=lambda r: all(
            r["rows"]["the three together"]["share"][0] > r["rows"][name]["share"][0]
            for name in r["wins"]
        ),
        page="papers/results/cnsm_instances.md",
    ),
)

PAPER = Paper(
    "cnsm",
    "N. Di Cicco, F. Poltronieri, J. Santos, M. Zaccarini, M. Tortonesi, C. Stefanelli, "
    "F. De Turck: Multi-Objective Scheduling and Resource Allocation of Kubernetes Replicas Across "
    "the Compute Continuum",
    "CNSM 2024",
    "temporal",
    ENTRIES,
)
