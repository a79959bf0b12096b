"""Whether methods end by themselves, and what a certificate says: the command line's defaults.

    python benchmarks/defaults.py

All seconds are CPU seconds of the process, and its clock counts them too. A stopped run goes on
where it was.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from statistics import median

from auto import FIRST_SEED, methods_of
from harness import ROOT, Benchmark, section, shown, table
from limits import measure

from placeopt import registry
from placeopt.core.fronts.front import Front
from placeopt.core.fronts.words import percent

#: The largest shipped instance of each problem.
SHIPPED = {
    "temporal": "aws-50",
    "edge-cloud": "basic-50",
    "rolling-update": "repack-10x5",
    "multi-cluster": "stream-4x100",
    "rescheduling": "chain-12",
}
#: A method ends by itself within so many seconds; a certificate is wanted within so many.
MINUTE, CERTIFIED = 60, 20
#: What the points written at the README's command may miss, of what is attainable.
AIM = 0.025


def answer(arguments: list[str]) -> tuple[int, float, float | None]:
    """Return exit code, CPU seconds, and the gap of the front written."""
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder, "front.json")
        code, seconds = measure([*arguments, "-o", str(written)])
        gap = Front.read(written).gap() if code == 0 and "--certify" in arguments else None
    return code, seconds, gap


def ends(run: Benchmark, kind: str, called: str, instance: str) -> list[object]:
    """Let every method answer an instance without a limit; return the row."""
    taken = {}
    for method in methods_of(kind):
        asked = ["solve", instance, "--method", method]
        taken[method] = run.cell(f"ends {kind} {called} {method}", lambda a=asked: answer(a))
    answered = {m: seconds for m, (code, seconds, _) in taken.items() if code == 0}
    late = [f"`{m}` {s:.0f}" for m, (_, s, _) in taken.items() if s > MINUTE]
    refused = [f"`{m}`" for m, (code, *_) in taken.items() if code]
    last = max(answered, key=lambda m: answered[m])
    middle = f"{median(answered.values()):.1f}", f"{answered[last]:.1f} (`{last}`)"
    ended = ", ".join(late) or "none", ", ".join(refused) or "none"
    return shown([kind, called, len(answered), *middle, *ended])


def certificate(run: Benchmark, kind: str, called: str, instance: str) -> list[object]:
    """Ask for a certificate of an instance; return the row."""
    asked = ["solve", instance, "--time-limit", str(CERTIFIED), "--certify"]
    _, seconds, gap = run.cell(f"certificate {kind} {called}", lambda: answer(asked))
    missing = "nothing proven" if gap is None else "none" if gap == 0 else percent(gap)
    return shown([kind, called, f"{seconds:.1f}", missing])


def main() -> None:
    """Measure, and write the page."""
    os.chdir(ROOT)  # shipped instances are found by their names
    run = Benchmark(__file__, __doc__, "numpy", "numba", "pymoo", "highspy", "moocore")
    with tempfile.TemporaryDirectory() as folder:
        instances = [(kind, f"`{name}`", name) for kind, name in SHIPPED.items()]
        for kind in SHIPPED:
            file = Path(folder) / f"{kind}.json"
            registry.problem_class(kind).generate(FIRST_SEED).write(file)
            instances.append((kind, "the generator's default", str(file)))
        certified = [certificate(run, *one) for one in instances]
        ended = [ends(run, *one) for one in instances]
    late = sum(row[5] != "none" for row in ended)
    run.write(
        "Defaults that end, and certificates",
        "The largest shipped instances, and those of `placeopt generate` with seed "
        f"{FIRST_SEED} and no sizes. All seconds are CPU seconds of the whole process, those of "
        "limits too.",
        section(
            "Without a limit",
            f"Every method ends by itself. Aim: within {MINUTE} s. **Some method takes longer in "
            f"{late} of {len(ended)} rows.**",
            table(
                "problem | instance | methods | median (s) | slowest (s) | over a minute (s) | "
                "refused, or no plan",
                ended,
            ),
        ),
        section(
            f"`placeopt solve INSTANCE --time-limit {CERTIFIED} --certify`",
            "What the points written miss at most of the attainable hypervolume. Aims: every "
            f"problem prints a gap; `aws-50`, the README's, at most {AIM:.1%}.",
            table("problem | instance | seconds | at most missing", certified),
        ),
    )


if __name__ == "__main__":
    main()
