"""What Gymnasium and stable-baselines3 say of an environment."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env


def passes_the_checkers(env: gymnasium.Env[Any, Any]) -> None:
    """Gymnasium's checker has nothing to say; stable-baselines3's, where it is installed, nothing
    but that rows of features are unusual.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env, skip_render_check=True)
    checker = pytest.importorskip(
        "stable_baselines3.common.env_checker", reason="stable-baselines3 is not installed"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="Your observation .* has an unconventional shape")
        checker.check_env(env)
