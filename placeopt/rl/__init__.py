"""Gymnasium environments over the sequential faces. Importing this registers one for every problem that has such a face.

>>> import gymnasium, placeopt.rl
>>> env = gymnasium.make("placeopt/EdgeCloud-v0", sizes={"applications": 5})
>>> many = gymnasium.make_vec("placeopt/MultiCluster-v0", num_envs=64, clusters=8, rate=5.0)
"""

from __future__ import annotations

import importlib.util

import gymnasium

from placeopt.problems import KINDS
from placeopt.rl.environment import SequentialEnv

__all__ = ["ENVIRONMENTS", "SequentialEnv"]

#: Problems with environments of their own: the single one and the vectorised one.
OWN = {
    "multi-cluster": (
        "placeopt.rl.multi_cluster:make_env",
        "placeopt.rl.multi_cluster:make_vec_env",
    ),
    "rescheduling": ("placeopt.rl.rescheduling:make_env", "placeopt.rl.rescheduling:make_vec_env"),
}

#: ``"problem"`` of a document -> the id of its environment.
ENVIRONMENTS = {
    kind: f"placeopt/{name}-v0"
    for kind, (module, name) in KINDS.items()
    if importlib.util.find_spec(f"placeopt.sequential.{module}") is not None
} | {"multi-cluster": "placeopt/MultiCluster-v0"}

for _kind, _name in ENVIRONMENTS.items():
    if _name in gymnasium.registry:
        continue
    if _kind in OWN:
        gymnasium.register(id=_name, entry_point=OWN[_kind][0], vector_entry_point=OWN[_kind][1])
    else:
        gymnasium.register(
            id=_name, entry_point="placeopt.rl.environment:SequentialEnv", kwargs={"problem": _kind}
        )
