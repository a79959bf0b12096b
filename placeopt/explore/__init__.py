"""A page on this machine in which a plan is chosen, and which grows while runs work.

`serve` listens on 127.0.0.1 alone, needs no network and no package beyond the core.
"""

from placeopt.explore.server import serve

__all__ = ["serve"]
