"""X. Bai et al., REACH: rescheduling."""

from typing import Any

from papers.entry import Entry, Paper
from papers.measures import reach_fit

_PAGE, _MEASURE = "papers/results/reach_fit.md", "reach_fit"
_FIT = "Profile `reach`: eight open numbers fitted on the failure means alone"
_LEARNED, _RESULTS = "rescheduling/learned.md", "rescheduling/results.md"
_NOT_JOINED = "Measured, but by a script without a JSON result"
_SIMULATOR = "It needs a simulator of requests, with queues and an autoscaler: not in the model."


def _lead(result: Any, application: str) -> float:
    """Return by what share REACH is ahead of the best other in the surge."""
    found = result["cases"][application]["surge"]
    others = [found[name] for name in reach_fit.SURGE if name != "REACH"]
    return 1 - found["REACH"] / min(others)


ENTRIES = (
    Entry("Table I", "Related works.", "a survey", "A survey has nothing to run.", nothing=True),
    Entry("Table II", "Notation.", "a list", "models/rescheduling/README.md.", nothing=True),
    Entry(
        "Table III",
        "Machines of the testbed.",
        "2 Cloud-A, 2 Edge-A, 2 Edge-B",
        "`placeopt generate rescheduling` has the same six nodes.",
        nothing=True,
    ),
    Entry(
        "Table IV",
        "Work of the five services in muBench.",
        "digits of pi, bytes written",
        "Execution times are not printed: profile `stated` has its proportions, `reach` is fitted.",
        nothing=True,
    ),
    Entry(
        "Table V",
        "Settings of REACH's PPO and of RSDQL.",
        "11 settings",
        "SETTINGS of placeopt/rescheduling/environment.py; the bundled policy uses QUICK.",
        nothing=True,
    ),
    Entry("Fig. 1", "Vehicles in the continuum.", "a drawing", "A drawing.", nothing=True),
    Entry("Fig. 2", "Parts of the system.", "a drawing", "A drawing.", nothing=True),
    Entry("Fig. 3", "Agent and environment.", "a drawing", "A drawing.", nothing=True),
    Entry(
        "Fig. 4",
        "Example of states and moves.",
        "an example",
        "tests/rl checks the same moves.",
        nothing=True,
    ),
    Entry("Fig. 5", "The three applications.", "a drawing", "Generated so.", nothing=True),
    Entry(
        "Fig. 6",
        "Rewards of REACH and RSDQL over 3 million steps, three applications.",
        "curves; REACH above RSDQL",
        f"{_NOT_JOINED}; 24,000 steps.",
        page=_LEARNED,
    ),
    Entry(
        "Fig. 7",
        "20 to 36 pods, 6 to 18 nodes: rewards, training time, time of a decision.",
        "rewards above 20, training below 20 min, decisions within 1 ms",
        f"{_NOT_JOINED}; 4,000 steps.",
        page=_LEARNED,
    ),
    Entry(
        "Fig. 8",
        "Latency of five schedulers: three applications, 4, 12, 20 pods.",
        "bars; REACH is best in 7 of 9",
        f"{_FIT}; the cases of Fig. 8 are predicted.",
        measure=_MEASURE,
        ours=lambda r: f"REACH is best in {reach_fit.best_in(r)} of 9",
        page=_PAGE,
    ),
    Entry(
        "claim, sec. VII-C: cut against Default",
        "REACH's latency is 21.56 % below Default's, mean over Fig. 8.",
        "21.56 %",
        f"{_FIT}; the policy was trained on other times.",
        measure=_MEASURE,
        ours=lambda r: f"{100 * reach_fit.cut(r, 'Default'):.2f} %",
        holds=lambda r: reach_fit.cut(r, "Default") >= 0.2156,
        page=_PAGE,
    ),
    Entry(
        "claim, sec. VII-C: cut against RSDQL",
        "REACH's latency is 9.83 % below RSDQL's, mean over Fig. 8.",
        "9.83 %",
        f"{_FIT}; the policy was trained on other times.",
        measure=_MEASURE,
        ours=lambda r: f"{100 * reach_fit.cut(r, 'RSDQL'):.2f} %",
        holds=lambda r: reach_fit.cut(r, "RSDQL") >= 0.0983,
        page=_PAGE,
    ),
    Entry(
        "claim, sec. VII-C: best in 7 of 9",
        "REACH is the fastest in 7 of 9 cases.",
        "7 of 9",
        f"{_FIT}; predicted.",
        measure=_MEASURE,
        ours=lambda r: f"{reach_fit.best_in(r)} of 9",
        holds=lambda r: reach_fit.best_in(r) >= 7,
        page=_PAGE,
    ),
    Entry(
        "Fig. 9",
        "Latency over time, two nodes fail, Chain.",
        "series",
        "Its means are met below; a series needs a simulator of requests.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. VII-D: means in the failure",
        "Mean latency: REACH, RSDQL, Cloud-First, Latency-Greedy, Default.",
        "219.92, 238.8, 291, 270.5, 271.8 ms; -7.9, -24.5, -18.7, -19.1 %",
        f"{_FIT}: fitted.",
        measure=_MEASURE,
        ours=lambda r: (
            ", ".join(
                f"{r['cases']['chain']['failure'][name]:.1f}"
                for name in ("REACH", "RSDQL", "Cloud-First", "Latency-Greedy", "Default")
            )
            + " ms"
        ),
        holds=lambda r: (
            reach_fit.ordered(r["cases"]["chain"]["failure"], reach_fit.FAILURE)
            and reach_fit.error(r["cases"]["chain"]["failure"], reach_fit.FAILURE) <= 0.1
        ),
        page=_PAGE,
    ),
    Entry(
        "claim, sec. VII-D: below 250 ms in the failure",
        "Share of requests below 250 ms.",
        "86.9, 76.9, 35.5, 46.2, 46.7 %",
        _SIMULATOR,
    ),
    Entry(
        "claim, sec. VII-D: other applications",
        "Failure in the two aggregators: REACH's mean, and its lead over the best baseline.",
        "190.25 and 220.1 ms; over 10 and 8 %",
        f"{_FIT} of Chain; predicted. Which application is which is not said.",
        measure=_MEASURE,
        ours=lambda r: (
            ", ".join(
                f"{r['cases'][name]['failure']['REACH']:.1f}"
                for name in ("aggregator-sequential", "aggregator-parallel")
            )
            + " ms"
        ),
        page=_PAGE,
    ),
    Entry(
        "Fig. 10",
        "Latency over time in a surge with autoscaling, Chain.",
        "series",
        "One latency a case, no series.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. VII-E: means in the surge",
        "Mean latency: REACH, RSDQL, Cloud-First, Latency-Greedy, Default.",
        "197.55, 207.29, 258.77, 258.02, 255.12 ms",
        f"{_FIT}: predicted. No setting that fits the failure gives the surge: table on the page.",
        measure=_MEASURE,
        ours=lambda r: (
            ", ".join(
                f"{r['cases']['chain']['surge'][name]:.1f}"
                for name in ("REACH", "RSDQL", "Cloud-First", "Latency-Greedy", "Default")
            )
            + " ms"
        ),
        holds=lambda r: (
            reach_fit.ordered(r["cases"]["chain"]["surge"], reach_fit.SURGE)
            and reach_fit.error(r["cases"]["chain"]["surge"], reach_fit.SURGE) <= 0.1
        ),
        page=_PAGE,
    ),
    Entry(
        "claim, sec. VII-E: below 250 ms in the surge",
        "Share of requests below 250 ms.",
        "90, 89, 55 to 59 %",
        _SIMULATOR,
    ),
    Entry("Fig. 11", "Requests per second over time, Chain.", "series", _SIMULATOR),
    Entry(
        "claim, sec. VII-E: requests per second",
        "Throughput after the surge: REACH, RSDQL, others.",
        "26.62, 25.45, about 21",
        _SIMULATOR,
    ),
    Entry(
        "claim, sec. VII-E: other applications",
        "Surge in the two aggregators: REACH's lead over the best baseline.",
        "14.48 and 3 %",
        f"{_FIT} of Chain; predicted, parallel first.",
        measure=_MEASURE,
        ours=lambda r: (
            f"{100 * _lead(r, 'aggregator-parallel'):.1f}, "
            f"{100 * _lead(r, 'aggregator-sequential'):.1f} %"
        ),
        page=_PAGE,
    ),
    Entry(
        "claim, sec. VII-F: moves",
        "Moves of REACH at 4, 12, 20 pods.",
        "1.58, 6.2, 8.95",
        f"{_FIT}; starts are the default scheduler's, of which one is drawn.",
        measure=_MEASURE,
        ours=lambda r: ", ".join(f"{reach_fit.moves(r, pods):.2f}" for pods in reach_fit.MOVES),
        page=_PAGE,
    ),
    Entry(
        "claim, sec. VII-F: pods moved",
        "Share of the pods moved at 4, 12, 20 pods.",
        "39.5, 52, 42 %",
        f"{_FIT}; moves by pods, a pod may move twice.",
        measure=_MEASURE,
        ours=lambda r: (
            ", ".join(f"{100 * reach_fit.moves(r, pods) / pods:.0f}" for pods in reach_fit.MOVES)
            + " %"
        ),
        page=_PAGE,
    ),
    Entry(
        "claim, sec. VII-A: training time",
        "Training takes less than 10 min (64 cores and a GPU).",
        "below 10 min",
        f"{_NOT_JOINED}.",
        page=_LEARNED,
    ),
    Entry(
        "claim, abstract",
        "Mean latency falls by 7.9, 10 and 8 % in the three applications.",
        "7.9, 10, 8 %",
        f"{_NOT_JOINED}.",
        page=_RESULTS,
    ),
)

PAPER = Paper(
    "reach",
    "X. Bai, M. T. Islam, R. Buyya, A. N. Toosi: REACH: Reinforcement Learning for Adaptive "
    "Microservice Rescheduling in the Cloud-Edge Continuum",
    "REACH",
    "rescheduling",
    ENTRIES,
)
