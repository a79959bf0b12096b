"""The one door for what is not placeopt's own: problems, methods, doors, policies, pages.

Everything that a distribution or a notebook needs to add its own stands here by name, and stays
here when modules move. Nothing is imported before it is used.

>>> from placeopt.plugins import Encoder, Problem, ProblemSpec, kernel
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from placeopt.core.spec import load

if TYPE_CHECKING:
    from placeopt.backtest.arrays import arrays_of as arrays_of
    from placeopt.backtest.engine import run as play_trace  # noqa: F401
    from placeopt.backtest.execution import Action as Action
    from placeopt.backtest.policies.base import Policy as Policy
    from placeopt.backtest.trace import read as read_trace  # noqa: F401
    from placeopt.core.budget import Budget as Budget
    from placeopt.core.door import Door as Door
    from placeopt.core.errors import DocumentError as DocumentError
    from placeopt.core.errors import InfeasibleInstanceError as InfeasibleInstanceError
    from placeopt.core.errors import MissingExtraError as MissingExtraError
    from placeopt.core.errors import UnsupportedError as UnsupportedError
    from placeopt.core.errors import UsageError as UsageError
    from placeopt.core.files.documents import read_json as read_json
    from placeopt.core.files.documents import read_text as read_text
    from placeopt.core.files.documents import validate as validate
    from placeopt.core.files.documents import write_json as write_json
    from placeopt.core.files.documents import write_text as write_text
    from placeopt.core.files.paths import AnyPath as AnyPath
    from placeopt.core.files.paths import write_parts as write_parts
    from placeopt.core.fronts.certificate import Bounds as Bounds
    from placeopt.core.fronts.trace import RunSnapshot as RunSnapshot
    from placeopt.core.fronts.values import Evaluation as Evaluation
    from placeopt.core.fronts.values import Objective as Objective
    from placeopt.core.fronts.values import Plan as Plan
    from placeopt.core.fronts.values import Run as Run
    from placeopt.core.fronts.values import Violation as Violation
    from placeopt.core.goals import read_weights as read_weights
    from placeopt.core.interfaces import Batch as Batch
    from placeopt.core.interfaces import DecisionSequence as DecisionSequence
    from placeopt.core.interfaces import Encoder as Encoder
    from placeopt.core.interfaces import Parts as Parts
    from placeopt.core.interfaces import build_encoder as build_encoder
    from placeopt.core.interfaces import build_sequence as build_sequence
    from placeopt.core.kernels.common import below as below
    from placeopt.core.kernels.common import most_worse as most_worse
    from placeopt.core.kernels.common import uniform as uniform
    from placeopt.core.kernels.compile import allocating_kernel as allocating_kernel
    from placeopt.core.kernels.compile import kernel as kernel
    from placeopt.core.numbers import ragged as ragged
    from placeopt.core.problem import Amount as Amount
    from placeopt.core.problem import Name as Name
    from placeopt.core.problem import Positive as Positive
    from placeopt.core.problem import Problem as Problem
    from placeopt.core.problem import Record as Record
    from placeopt.core.spec import Method as Method
    from placeopt.core.spec import ProblemSpec as ProblemSpec
    from placeopt.core.task import Candidate as Candidate
    from placeopt.core.task import Task as Task
    from placeopt.edge_cloud.views import sweep_figure as sweep_figure
    from placeopt.edge_cloud.views import use_of_layers as use_of_layers
    from placeopt.evolve.pymoo_adapter import EncodedProblem as EncodedProblem
    from placeopt.evolve.pymoo_adapter import Sample as Sample
    from placeopt.evolve.pymoo_adapter import Variation as Variation
    from placeopt.exact.goals import declare as declare
    from placeopt.exact.goals import remember as remember
    from placeopt.multi_cluster.episodes import batch as multi_cluster_batch  # noqa: F401
    from placeopt.plot.markup import Bar as Bar
    from placeopt.plot.markup import Cell as Cell
    from placeopt.plot.markup import Mark as Mark
    from placeopt.plot.markup import before_after as before_after
    from placeopt.plot.markup import paragraphs as paragraphs
    from placeopt.plot.markup import table as table
    from placeopt.plot.scene import Scene as Scene
    from placeopt.plot.style import PALETTE as PALETTE
    from placeopt.registry import problem_class as problem_class
    from placeopt.rescheduling.generator import fail as fail
    from placeopt.rl.deepsets import DeepSetsActorCritic as DeepSetsActorCritic
    from placeopt.rl.deepsets import numpy_arrays as numpy_arrays
    from placeopt.rl.evaluation import evaluate as evaluate_policy  # noqa: F401
    from placeopt.rl.evaluation import greedy as greedy_choice  # noqa: F401
    from placeopt.rl.evaluation import summary as summary
    from placeopt.rl.policy import Shape as Shape
    from placeopt.rl.policy import TrainedPolicy as TrainedPolicy
    from placeopt.rl.policy_file import write as write_policy  # noqa: F401
    from placeopt.rl.sb3 import BatchVecEnv as BatchVecEnv

#: Module -> the names that it has; ``run=play_trace`` is called `play_trace` here.
_OF: dict[str, str] = {
    "core.budget": "Budget",
    "core.door": "Door",
    "core.errors": "DocumentError InfeasibleInstanceError MissingExtraError UnsupportedError "
    "UsageError",
    "core.files.documents": "read_json read_text validate write_json write_text",
    "core.files.paths": "AnyPath write_parts",
    "core.fronts.certificate": "Bounds",
    "core.fronts.trace": "RunSnapshot",
    "core.fronts.values": "Evaluation Objective Plan Run Violation",
    "core.interfaces": "Batch DecisionSequence Encoder Parts build_encoder build_sequence",
    "core.kernels.compile": "allocating_kernel kernel",
    "core.kernels.common": "below most_worse uniform",
    "core.numbers": "ragged",
    "core.problem": "Amount Name Positive Problem Record",
    "core.spec": "Method ProblemSpec",
    "core.task": "Candidate Task",
    "core.goals": "read_weights",
    "evolve.pymoo_adapter": "EncodedProblem Sample Variation",
    "exact.goals": "declare remember",
    "plot.markup": "Bar Cell Mark before_after paragraphs table",
    "plot.scene": "Scene",
    "plot.style": "PALETTE",
    "registry": "problem_class",
    "edge_cloud.views": "sweep_figure use_of_layers",
    "multi_cluster.episodes": "batch=multi_cluster_batch",
    "rescheduling.generator": "fail",
    "rl.deepsets": "DeepSetsActorCritic numpy_arrays",
    "rl.evaluation": "evaluate=evaluate_policy greedy=greedy_choice summary",
    "rl.policy": "Shape TrainedPolicy",
    "rl.policy_file": "write=write_policy",
    "rl.sb3": "BatchVecEnv",
    "backtest.arrays": "arrays_of",
    "backtest.engine": "run=play_trace",
    "backtest.execution": "Action",
    "backtest.policies.base": "Policy",
    "backtest.trace": "read=read_trace",
}
_ENTRIES = {
    name.rpartition("=")[2]: f"placeopt.{module}:{name.partition('=')[0]}"
    for module, names in _OF.items()
    for name in names.split()
}
__all__ = sorted(_ENTRIES)


def __getattr__(name: str) -> Any:
    if name not in _ENTRIES:
        raise AttributeError(f"module 'placeopt.plugins' has no attribute {name!r}")
    return load(_ENTRIES[name])


def __dir__() -> list[str]:
    return list(__all__)
