"""Models in OR-Tools CP-SAT that an expert would write instead of using placeopt, one a problem.

Each module has ``best(instance, weights, refused_cap, seconds, seed)``, which returns the plan of
least weighted sum that CP-SAT finds in so many CPU seconds, or None. OR-Tools is no dependency of
placeopt: ``pip install ortools``.
"""
