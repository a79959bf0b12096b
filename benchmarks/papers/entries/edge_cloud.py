"""P. Soumplis et al., SN Computer Science 2024: edge-cloud."""

from papers.entry import Entry, Paper

_RESULTS = "edge_cloud/results.md"
_SOON = "Measured, but by a script without a JSON result"

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
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "Table 4: cost",
        "Weighted sum at w = .01 of greedy, rollout and MILP, 50 to 300 applications.",
        "18 numbers, missing in the text that we have",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "Table 4: time",
        "Seconds of the same.",
        "18 numbers, missing in the text that we have",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, Table 4: greedy",
        "The greedy rule is at most 10 % above the optimum.",
        "10 %",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, Table 4: rollout",
        "The rollout is within 4 % of the optimum in all cases.",
        "4 %",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, Table 4: greedy's time",
        "Greedy takes milliseconds.",
        "order of ms",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, Table 4: MILP's limit",
        "At 250 the MILP ends at its limit, at 300 without a plan.",
        "no plan at 300",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry("Fig. 3", "Latency and cost by weight w.", "a front", f"{_SOON}.", page=_RESULTS),
    Entry(
        "claim, Fig. 3: latency",
        "Latency falls by about 80 % from w = 1 to w = 0.",
        "about 80 %",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, Fig. 3: cost",
        "Cost rises by almost 160 %.",
        "almost 160 %",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry("Fig. 4", "Microservices of each layer by w.", "bars", f"{_SOON}.", page=_RESULTS),
    Entry("Fig. 5", "Operating and networking cost by w.", "bars", f"{_SOON}.", page=_RESULTS),
    Entry(
        "claim, Fig. 5: cloud",
        "Networking is about 49 % of the cost when cost is the goal.",
        "49 %",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry(
        "claim, Fig. 5: edge",
        "Networking is 5 % of the cost when latency is the goal.",
        "5 %",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry("Fig. 6", "Objective and time by beta.", "curves", f"{_SOON}.", page=_RESULTS),
    Entry(
        "claim, Fig. 6",
        "A larger beta gives better plans and takes longer.",
        "in words",
        f"{_SOON}.",
        page=_RESULTS,
    ),
    Entry("Fig. 7", "Objective over time by gamma.", "curves", f"{_SOON}.", page=_RESULTS),
    Entry(
        "claim, Fig. 7",
        "Between gamma 0 and 1 lie almost 15 % of the objective.",
        "almost 15 %",
        f"{_SOON}.",
        page=_RESULTS,
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
