"""Legal values of the options that generated instances and generated episodes share."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

NumClusters = Annotated[int, Field(ge=2, le=10_000, description="Number of clusters.")]
NumRequests = Annotated[int, Field(ge=1, le=10**6, description="Number of requests.")]
NumReplicas = Annotated[int, Field(ge=1, le=1000, description="Replicas of a request.")]
#: None stands for `placeopt.multi_cluster.paper_data.RATES`.
Rate = Annotated[
    float | None,
    Field(gt=0, le=1e15, allow_inf_nan=False, description="Arrivals per unit of time."),
]
MeanDuration = Annotated[
    float, Field(gt=0, le=1e6, allow_inf_nan=False, description="Mean duration of a request.")
]
#: Actions that spread a request: FFD; FFD and FFI; or FFD, FFI and BF1B1.
NumSpreads = Annotated[
    int, Field(ge=0, le=3, description="Spreads among the actions: FFD, then FFI, then BF1B1.")
]
#: What the first spread does: FFD by the rules; FFD as the paper prints it; Karmada's division.
FirstSpread = Annotated[
    Literal["ffd", "printed", "divide"],
    Field(
        description="What the first spread does: FFD by the rules of the episodes; FFD repeated "
        "until nothing is left, as the paper prints it (the fixed rules do that anyway); or "
        "replicas divided by what clusters can still take, as Karmada does (divide)."
    ),
]
Accept = Annotated[
    Literal["free", "first", "whole"],
    Field(
        description="When a refusal is legal: always (free), where nothing else places a request "
        "(first); whole also keeps to actions that place all replicas, where there are any."
    ),
]
