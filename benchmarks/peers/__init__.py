"""Models in OR-Tools CP-SAT that an expert would write instead of using placeopt, one a problem.

Each module has ``best(instance, weights, refused_cap, limits, seed)``: it returns plans of least
weighted sum that CP-SAT has after limits in CPU seconds, all of one run, None where it has none.
OR-Tools is no dependency of placeopt: ``pip install ortools``.
"""
