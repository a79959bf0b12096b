"""Names the wheel by its platform where the package has compiled kernels: ``make wheel``."""

from __future__ import annotations

import platform
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface):  # type: ignore[type-arg]
    """Kernels are for one Python and one kind of CPU; a wheel without them is for all."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Take the kernels along, if there are any."""
        brought = f"placeopt/_compiled/**/*.{sys.implementation.cache_tag}.*"
        if version == "editable" or not any(Path(self.root).glob(brought)):
            return
        build_data["pure_python"] = False
        build_data["artifacts"].append(brought)
        if sys.platform == "linux":  # they call nothing of the C library
            python = f"cp{sys.version_info[0]}{sys.version_info[1]}"
            build_data["tag"] = f"{python}-{python}-manylinux_2_17_{platform.machine()}"
        else:
            build_data["infer_tag"] = True
