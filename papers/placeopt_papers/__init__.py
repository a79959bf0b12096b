"""What only the tables of the five papers need, as a distribution of its own.

`make papers` installs it. It adds what it has by entry points, as any distribution may: encodings
and methods of problems, and commands through a door. Nothing of placeopt imports it.
"""

from placeopt.core.door import Door

DOOR = Door(name="papers", commands="placeopt_papers.commands:register")
