"""M. Zambianco et al., ICIN 2024: rolling-update."""

from papers.entry import Entry, Paper

_FIGURES = "rolling_update/figures.md"
_NOT_JOINED = "Measured, but by a script without a JSON result"
_NO_NUMBERS = "curves; the text prints no number"

ENTRIES = (
    Entry("Fig. 1", "Clusters of several clouds.", "a drawing", "A drawing.", nothing=True),
    Entry(
        "(2)-(9)",
        "The integer program of the rolling update.",
        "equations",
        "models/rolling_update/README.md: corrected form; what is wrong in the printed one.",
        nothing=True,
    ),
    Entry(
        "Algorithm 1",
        "The allocation phase of the heuristic.",
        "pseudocode",
        "Method `two-phase`; tight microservices that fit nowhere join the rest.",
        nothing=True,
    ),
    Entry("Algorithm 2", "The ordering phase.", "pseudocode", "Method `two-phase`.", nothing=True),
    Entry(
        "Table I",
        "Parameters of the simulation.",
        "10 parameters",
        "`placeopt generate rolling-update` draws so.",
        nothing=True,
    ),
    *(
        Entry(
            f"Fig. {figure}{part}",
            f"{what}: {where}.",
            _NO_NUMBERS,
            f"{_NOT_JOINED}; {instances} instances, the paper's mean is over 50.",
            page=_FIGURES,
        )
        for figure, where, instances in (
            (2, "2 clusters, 50 microservices", 20),
            (3, "4 clusters, 50 microservices", 20),
            (4, "4 clusters, 500 microservices", 5),
        )
        for part, what in (("a", "Cost"), ("b", "Disruptions"), ("c", "QoS violations"))
    ),
    Entry(
        "Fig. 5",
        "Seconds of every scheme by the microservices that may move; optimal by the program.",
        _NO_NUMBERS,
        f"{_NOT_JOINED}; the program's curve is missing.",
        page=_FIGURES,
    ),
    Entry(
        "claim, sec. V-B: optimal and heuristic in cost",
        "The heuristic and Recreate approximate the optimum; Rolling Update is the dearest.",
        "in words",
        f"{_NOT_JOINED}.",
        page=_FIGURES,
    ),
    Entry(
        "claim, sec. V-B: disruptions",
        "The heuristic's are close to zero, below those of a random order.",
        "in words",
        f"{_NOT_JOINED}.",
        page=_FIGURES,
    ),
    Entry(
        "claim, sec. V-B: QoS",
        "Optimum and heuristic break no locality constraint with two clusters.",
        "0 (Fig. 2c)",
        f"{_NOT_JOINED}.",
        page=_FIGURES,
    ),
    Entry(
        "claim, sec. V-B: large",
        "At 500 microservices the heuristic's cost is close to the lower bound.",
        "in words",
        f"{_NOT_JOINED}.",
        page=_FIGURES,
    ),
)

PAPER = Paper(
    "rolling_update",
    "M. Zambianco, S. Cretti, D. Siracusa: Cost Minimization in Multi-cloud Systems with Runtime "
    "Microservice Re-orchestration",
    "ICIN 2024",
    "rolling-update",
    ENTRIES,
)
