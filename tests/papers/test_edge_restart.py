"""The greedy rule of the multi-agent rollout paper, restarts as printed, against plain Python."""

from __future__ import annotations

import math

import numpy as np
from placeopt_papers import edge_restart

from placeopt.edge_cloud.problem import EdgeCloud
from placeopt.edge_cloud.sequence import EdgeCloudSequence


def restarted(problem: EdgeCloud, weight: float) -> tuple[dict[str, dict[str, str]], int]:
    """Return the printed greedy rule in plain Python, and how often an application began again."""
    nodes = {node.name: node for node in problem.nodes}
    room = {node.name: [node.cpu_cores, node.memory_gib] for node in problem.nodes}
    a = problem.arrays
    delay = {
        (one.name, other.name): a.delay[i, j]
        for i, one in enumerate(problem.nodes)
        for j, other in enumerate(problem.nodes)
    }
    placement, restarts = {}, 0
    for application in problem.applications:
        limits = {}
        for flow in application.flows:
            ends = flow.source, flow.target
            limits[ends] = limits[ends[::-1]] = (
                math.inf if flow.max_delay_ms is None else flow.max_delay_ms
            )

        def ranked(service, placed, farthest, application=application, limits=limits):
            found = []
            for k, (name, node) in enumerate(nodes.items()):
                late = delay[application.source, name]
                near = all(
                    delay[other, name] <= limits.get((service.name, who), np.inf)
                    for who, other in placed.items()
                )
                have = room[name][0] - service.cpu_cores, room[name][1] - service.memory_gib
                if min(have) >= -1e-9 and near:
                    price = node.operating_cost + node.network_cost * service.data
                    more = weight * price + (1 - weight) * max(0, late - farthest)
                    found.append((more, late, k, name))
            return [one[-1] for one in sorted(found)]

        first, *rest = application.microservices
        for start in ranked(first, {}, 0.0):
            placed = {first.name: start}
            room[start] = [room[start][0] - first.cpu_cores, room[start][1] - first.memory_gib]
            for service in rest:
                farthest = max(delay[application.source, name] for name in placed.values())
                options = ranked(service, placed, farthest)
                if not options:
                    break
                placed[service.name] = host = options[0]
                room[host] = [room[host][0] - service.cpu_cores, room[host][1] - service.memory_gib]
            if len(placed) == 1 + len(rest):
                placement[application.name] = placed
                break
            restarts += 1
            for service in application.microservices:
                if host := placed.get(service.name):
                    room[host] = [
                        room[host][0] + service.cpu_cores,
                        room[host][1] + service.memory_gib,
                    ]
        else:
            break
    return placement, restarts


def test_the_printed_restart_rule_against_plain_python():
    """Crowded instances on which applications do begin again."""
    seen = 0
    for seed in range(12):
        problem = EdgeCloud.generate(seed, applications=12, near=6, far=2, cloud=1, load=1.0)
        sequence = EdgeCloudSequence(problem, problem.objectives, "given")
        for weight in (0.01, 0.5):
            state, restarts = edge_restart.greedy(sequence, weight)
            expected, again = restarted(problem, weight)
            plan = sequence.plan(state)["placement"]
            assert {name: plan[name] for name in expected} == expected
            assert restarts == again
            seen += restarts
    assert seen > 0
