"""Requests on top of a call graph: arrivals, queues in pods, an autoscaler, failures and surges.

==============  ====================================================================
``scenario``    the document: load, serving, autoscaler, events, who places and moves
``engine``      discrete events: requests that visit pods, which end or fail
``play``        a scenario played on an instance of `rescheduling`, seed by seed
``figures``     what is told of a run: percentiles, misses, series over time
``command``     ``placeopt traffic``
==============  ====================================================================
"""

from placeopt.core.door import Door

DOOR = Door(
    name="traffic",
    commands="placeopt_papers.traffic.command:register",
    schemas={"traffic": "placeopt_papers.traffic.scenario:Scenario"},
)
