"""Exact methods and bounds: epsilon-constraint enumeration, decompositions, solver back ends."""
