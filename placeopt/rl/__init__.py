"""Gymnasium environments over the sequential faces. Importing this registers one for every problem that has such a face.

>>> import gymnasium, placeopt.rl
>>> env = gymnasium.make("placeopt/EdgeCloud-v0", sizes={"applications": 5})
"""

from __future__ import annotations

import importlib.util

import gymnasium

from placeopt.problems import KINDS
from placeopt.rl.environment import SequentialEnv

__all__ = ["ENVIRONMENTS", "SequentialEnv"]

#: ``"problem"`` of a document -> the id of its environment.
ENVIRONMENTS = {
    kind: f"placeopt/{name}-v0" for kind, (module, name) in KINDS.items() if importlib.util.find_spec(f"placeopt.sequential.{module}") is not None
}

for _kind, _name in ENVIRONMENTS.items():
    if _name not in gymnasium.registry:
        gymnasium.register(id=_name, entry_point="placeopt.rl.environment:SequentialEnv", kwargs={"problem": _kind})
