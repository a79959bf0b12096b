"""Machine reassignment, the ROADEF/EURO challenge 2012, as a distribution of its own.

It uses what placeopt gives to every distribution, and nothing else of it.
"""

from placeopt.plugins import Door, Method, ProblemSpec

SPEC = ProblemSpec(
    kind="machine-reassignment",
    instance="machine_reassignment.instance:MachineReassignment",
    plan="machine_reassignment.instance:Reassignment",
    generator="machine_reassignment.generator:generate",
    encoder="machine_reassignment.encoder:ReassignmentEncoder",
    seeds="machine_reassignment.annealing:seeds",
    model="machine_reassignment.model",
    summary="machine_reassignment.views",
    bounds="machine_reassignment.bounds:bounds",
    gap_of="load_cost",
    auto="annealing",
    quick="annealing",
    methods=(
        Method(
            "annealing",
            "machine_reassignment.annealing:run",
            "shifts, swaps and exchanges of processes on simulated annealing, for each weighting",
            kept="weightings that have ended",
        ),
    ),
)

DOOR = Door(name="roadef-2012", commands="machine_reassignment.files:commands")
