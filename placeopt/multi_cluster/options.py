"""Legal values of the options that generated instances and generated episodes share."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

NumClusters = Annotated[int, Field(ge=2, le=10_000, description="Number of clusters.")]
NumRequests = Annotated[int, Field(ge=1, le=10**6, description="Number of requests.")]
NumReplicas = Annotated[int, Field(ge=1, le=1000, description="Replicas of a request.")]
Rate = Annotated[
    float, Field(gt=0, le=1e15, allow_inf_nan=False, description="Arrivals per unit of time.")
]
MeanDuration = Annotated[
    float, Field(gt=0, le=1e6, allow_inf_nan=False, description="Mean duration of a request.")
]
