"""Gymnasium environments over the sequential faces. Importing this registers one for every problem that has such a face.

>>> import gymnasium, placeopt.rl
>>> env = gymnasium.make("placeopt/EdgeCloud-v0", sizes={"applications": 5})
>>> many = gymnasium.make_vec("placeopt/MultiCluster-v0", num_envs=64, clusters=8, rate=5.0)
"""

from __future__ import annotations

import gymnasium

from placeopt.registry import specs
from placeopt.rl.environment import SequentialEnv

__all__ = ["ENVIRONMENTS", "SequentialEnv"]

#: ``"problem"`` of a document -> the id of its environment.
ENVIRONMENTS = {
    kind: f"placeopt/{spec.instance.rpartition(':')[2]}-v0"
    for kind, spec in specs().items()
    if spec.has("sequence")
}

for _kind, _name in ENVIRONMENTS.items():
    if _name in gymnasium.registry:
        continue
    _module = specs()[_kind].episodes
    if _module is not None:
        gymnasium.register(
            id=_name,
            entry_point=f"{_module}:make_env",
            vector_entry_point=f"{_module}:make_vec_env",
        )
    else:
        gymnasium.register(
            id=_name, entry_point="placeopt.rl.environment:SequentialEnv", kwargs={"problem": _kind}
        )
