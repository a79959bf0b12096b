"""The CNSM 2024 paper's own instance, read from the folder that PLACEOPT_DATA names."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from placeopt.temporal import cnsm_csv
from placeopt.temporal.instance import Temporal

#: The reference points in which hypervolume is quoted; the plain form divides by their product.
WIDE, TIGHT = (190.2, 1484.5, 0.0760), (105.0, 581.0, 0.073)


def paper_instance() -> Temporal:
    """Return the instance, or end with a message where the data is not there."""
    if "PLACEOPT_DATA" not in os.environ:
        sys.exit(
            "set PLACEOPT_DATA to the folder that holds cnsm2024/Services.csv, AWS_EC2_Pricing.csv "
            "and AWS_EC2_Latency.csv"
        )
    folder = Path(os.environ["PLACEOPT_DATA"]) / "cnsm2024"
    document = cnsm_csv.read(
        folder / "Services.csv",
        folder / "AWS_EC2_Pricing.csv",
        folder / "AWS_EC2_Latency.csv",
        name="cnsm-2024",
    )
    return Temporal.from_document(document)
