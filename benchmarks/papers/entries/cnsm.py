"""N. Di Cicco et al., CNSM 2024: temporal."""

from papers.entry import Entry, Paper

_RESULTS = "cnsm2024/results.md"
_SOON = "Measured, but by a script without a JSON result"

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
        "Table III",
        "EC2 offers and prices.",
        "18 offers, 3 prices",
        "`aws-50` has them as printed; `aws-50-corrected` mends two prices.",
        nothing=True,
    ),
    Entry("Table IV", "Latencies.", "6 x 6", "`aws-50` has them.", nothing=True),
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
        "`encoding=published` of nsga2, nsga3 and mspso.",
        nothing=True,
    ),
    Entry(
        "claim, sec. IV-A: ten requests",
        "One goal alone with 10 requests of 1 or 2 replicas: hundreds of seconds with HiGHS.",
        "hundreds of s",
        "Not measured yet.",
    ),
    Entry("Fig. 4a", "Fronts of latency and cost.", "3 fronts", f"{_SOON}.", page=_RESULTS),
    Entry("Fig. 4b", "Fronts of cost and interruption.", "3 fronts", f"{_SOON}.", page=_RESULTS),
    Entry("Fig. 5", "Fronts of three goals.", "3 fronts", f"{_SOON}.", page=_RESULTS),
    Entry(
        "Table V: HV",
        "Hypervolume of NSGA-II, NSGA-III, MSPSO for three choices of goals.",
        "64264 62477 38293; 15.18 15.34 21.47; 3694 4048 3930",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "Table V: S(F)",
        "Sparsity of the same fronts.",
        "3452 5730 2893; 1634 1276 887; 203.29 123.79 166.77",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-B: seconds",
        "Mean over 100 instances, 50,000 iterations: 24 s for NSGA, about 110 s for MSPSO.",
        "24, 24, 110 s (MacBook Pro M3)",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-C: different fronts",
        "With latency and cost NSGA finds low latency, MSPSO low cost.",
        "in words",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-C: MSPSO best in cost and interruption",
        "With cost and interruption MSPSO strongly dominates both NSGA.",
        "HV 21.47 over 15.34",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-D: points",
        "Points of the fronts of three goals: NSGA-II, NSGA-III, MSPSO.",
        "150, 112, 100",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-D: NSGA-III best, MSPSO second",
        "With three goals NSGA-III is best in hypervolume and sparsity, MSPSO second.",
        "HV 4048, 3930, 3694",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. V-C: ensemble",
        "Fronts of several algorithms together are better than each.",
        "recommended, not measured",
        f"{_SOON}.",
        page=_RESULTS,
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
