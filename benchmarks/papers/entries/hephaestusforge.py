"""J. Santos et al., HephaestusForge, Future Generation Computer Systems 2025: multi-cluster."""

from papers.entry import Entry, Paper

_README = "models/multi_cluster/README.md"
_LEARNED, _RESULTS = "multi_cluster/learned.md", "multi_cluster/results.md"
_NOT_JOINED = "Measured, but by a script without a JSON result"

ENTRIES = (
    Entry("Table 1", "Related works.", "a survey", "A survey has nothing to run.", nothing=True),
    Entry(
        "Table 2",
        "Karmada's choice by the cluster resource model, on an example of three clusters.",
        "cluster 1 is chosen",
        "`karmada-greedy` is this rule; a division by dynamic weights is not a baseline yet.",
        nothing=True,
    ),
    Entry(
        "Table 3",
        "The observation: ten columns for each cluster.",
        "10 columns",
        f"{_README} says which columns ours has and why.",
        nothing=True,
    ),
    Entry(
        "Table 4",
        "Types of clusters, their capacity and cost.",
        "5 types",
        "`placeopt generate multi-cluster` has the same; tests/multi_cluster checks them.",
        nothing=True,
    ),
    Entry(
        "Table 5",
        "Actions: one for each cluster, spread, reject.",
        "C + 2 actions",
        "Ours has C + 4 (three spreads); the base set cannot be chosen yet.",
        nothing=True,
    ),
    Entry(
        "Table 6",
        "Eight strategies: weights of latency, cost, inequality.",
        "8 strategies",
        "The same eight, by name.",
        nothing=True,
    ),
    Entry("Fig. 1", "Deployment by Karmada.", "a drawing", "A drawing.", nothing=True),
    Entry("Fig. 2", "Parts of the framework.", "a drawing", "A drawing.", nothing=True),
    Entry("Fig. 3", "DeepSets networks.", "a drawing", "placeopt/rl/deepsets.py.", nothing=True),
    Entry(
        "Fig. 4",
        "The Cloud2Edge application and its requests.",
        "a table of requests",
        "`placeopt generate multi-cluster` draws from the same.",
        nothing=True,
    ),
    Entry(
        "Algorithm 1",
        "First fit decreasing, for the action spread.",
        "pseudocode",
        "The action `spread`; checked against the published code, number for number.",
        nothing=True,
    ),
    Entry(
        "Table 7",
        "Seconds of an episode of training, six algorithms.",
        "DS-PPO .799, DS-DQN .494, heuristics .084 to .116 s",
        f"{_NOT_JOINED}; the heuristics' rows are missing.",
        page=_LEARNED,
    ),
    Entry(
        "Table 8, agents: reward",
        "Reward of DS-PPO and DS-DQN, eight strategies; ours must be above the better one.",
        "73.1 89.9 50.9 75.2 58.5 64.4 63.2 65.1",
        f"{_NOT_JOINED}.",
        page=_LEARNED,
    ),
    Entry(
        "Table 8, agents: rejected",
        "Rejected requests of the agents; ours must not be above the better one.",
        ".02 .01 .002 .008 .002 .003 .003 .003 %",
        f"{_NOT_JOINED}; the published rules pay +1 for refusing.",
        page=_LEARNED,
    ),
    Entry(
        "Table 8, agents: cost, latency, CPU, Gini",
        "What else the agents' plans are like.",
        "64 numbers",
        f"{_NOT_JOINED}.",
        page=_LEARNED,
    ),
    Entry(
        "Table 8, heuristics",
        "Rejected, cost, latency, CPU, Gini of four heuristics.",
        "20 numbers with intervals",
        f"{_NOT_JOINED}.",
        page=_RESULTS,
    ),
    Entry(
        "Fig. 5",
        "DS-PPO over 2,000 episodes of training: reward, rejections, cost, latency.",
        "curves",
        f"{_NOT_JOINED}; 1,000 episodes and six points a line.",
        page=_LEARNED,
    ),
    Entry(
        "Fig. 6",
        "DS-DQN over 2,000 episodes of training.",
        "curves",
        f"{_NOT_JOINED}; 500 episodes and three points a line.",
        page=_LEARNED,
    ),
    Entry(
        "Fig. 7",
        "Cost and latency of all algorithms in the test.",
        "bars: the columns of Table 8",
        "Not drawn; the numbers are those of Table 8.",
        page=_LEARNED,
    ),
    Entry(
        "Fig. 8",
        "Ratios 1 to 8 of replicas to clusters: reward, rejected, cost, latency, Gini.",
        "curves; agents accept most requests, heuristics reject 40 % at ratios 3 and 4",
        f"{_NOT_JOINED}.",
        page=_RESULTS,
    ),
    Entry(
        "Fig. 9",
        "4 to 32 clusters without training again.",
        "curves",
        f"{_NOT_JOINED}.",
        page=_RESULTS,
    ),
    Entry(
        "Fig. 10",
        "The extended actions: three spreads.",
        "curves",
        f"{_NOT_JOINED}; no agent was trained with one and with three spreads.",
        page=_RESULTS,
    ),
    Entry(
        "claim, abstract: rejections",
        "Rejections as low as .002 %, 90 times less than Karmada.",
        ".002 %, 90x",
        f"{_NOT_JOINED}.",
        page=_LEARNED,
    ),
    Entry(
        "claim, abstract: cost",
        "Strategies aware of cost reach 2.5 units, 1.5 times better than the best baseline.",
        "2.5 units, 1.5x",
        f"{_NOT_JOINED}.",
        page=_LEARNED,
    ),
    Entry(
        "claim, abstract: latency",
        "Strategies aware of latency reach 268 to 290 ms, 1.3 times better than the best baseline.",
        "268 to 290 ms, 1.3x",
        f"{_NOT_JOINED}.",
        page=_LEARNED,
    ),
    Entry(
        "claim, sec. 6: training time",
        "2,000 episodes take 16 to 27 min with agents, 2 to 4 min with heuristics.",
        "16 to 27 min; 2 to 4 min",
        f"{_NOT_JOINED}.",
        page=_LEARNED,
    ),
    Entry(
        "claim, sec. 6: convergence",
        "All agents converge between episodes 700 and 1,000.",
        "700 to 1,000 episodes",
        "The curves of ours end before; no rule of convergence is printed.",
    ),
    Entry(
        "claim, sec. 6: rejections in training",
        "PPO rejects below 20 %, DQN below 5 %.",
        "20 %, 5 %",
        "Rejections during training are not kept.",
    ),
    Entry(
        "claim, sec. 6: heuristics reject",
        "Heuristics reject .18 to 3.74 %.",
        ".18 to 3.74 %",
        f"{_NOT_JOINED}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. 6: fairness",
        "Latency-Greedy has the lowest Gini, .26; strategies with inequality have .46 to .58.",
        ".26; .46 to .58",
        f"{_NOT_JOINED}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, sec. 6: Balanced",
        "DS-DQN (Balanced) compromises: cost 3.07, latency 392 ms, Gini .54.",
        "3.07, 392.0 ms, .54",
        f"{_NOT_JOINED}.",
        page=_LEARNED,
    ),
)

PAPER = Paper(
    "hephaestusforge",
    "J. Santos, M. Zaccarini, F. Poltronieri, M. Tortonesi, C. Stefanelli, N. Di Cicco, "
    "F. De Turck: HephaestusForge: Optimal microservice deployment across the Compute Continuum "
    "via Reinforcement Learning",
    "Future Generation Computer Systems 2025",
    "multi-cluster",
    ENTRIES,
)
