"""A simulator of a recorded cluster, written anew: no heap, no arrays, nothing kept but objects."""

from __future__ import annotations

import math


def play(trace) -> tuple[float, list[float], list[tuple[float, str, str]]]:
    """Return dollars, sorted waits and placements of a trace whose nodes come and go as recorded.

    Of nodes with the same score (least allocated) the first is taken.
    """
    machines = {m.name: m for m in trace.machines}
    times = {0.0, trace.seconds}
    for one in (*trace.nodes, *trace.pods):
        times |= {one.from_s} | ({one.to_s} if one.to_s is not None else set())
    times |= {loss.at_s for loss in trace.losses}
    there, where, waiting, first, gone = {}, {}, [], {}, set()
    usd, before, waits, log = 0.0, 0.0, [], []

    def room(node):
        m = machines[there[node].machine]
        own = [p for p, n in where.items() if n == node]
        return (
            m.cpu_millicores - sum(p.cpu_millicores for p in own),
            m.memory_mib - sum(p.memory_mib for p in own),
        )

    def domain(rule, node):
        return node if rule.per == "node" else machines[there[node].machine].zone

    def broken(pod, node):
        if any(n == node and set(p.ports) & set(pod.ports) for p, n in where.items()):
            return True
        for rule in trace.rules:
            near = [p for p, n in where.items() if domain(rule, n) == domain(rule, node)]
            counted = [p for p in near if rule.name in p.counts]
            if rule.kind == "apart":
                if rule.name in pod.keeps and counted:
                    return True
                if rule.name in pod.counts and any(rule.name in p.keeps for p in near):
                    return True
            elif rule.name in pod.keeps and rule.kind == "together":
                anywhere = any(rule.name in p.counts for p in where)
                if not counted and (anywhere or rule.name not in pod.counts):
                    return True
            elif rule.name in pod.keeps:
                legal = [
                    domain(rule, n)
                    for n in there
                    if not pod.zones or machines[there[n].machine].zone in pod.zones
                ]
                here = dict.fromkeys(legal, 0)
                for p, n in where.items():
                    if rule.name in p.counts and domain(rule, n) in here:
                        here[domain(rule, n)] += 1
                more = here[domain(rule, node)] + (rule.name in pod.counts)
                if more - min(here.values()) > rule.max_skew:
                    return True
        return False

    def place(now, pod):
        best = None
        for node in there:
            m, (cpu, memory) = machines[there[node].machine], room(node)
            beside = any(
                n == node and (p.workload or p.name) == (pod.workload or pod.name)
                for p, n in where.items()
            )
            wrong = (pod.zones and m.zone not in pod.zones) or (pod.apart and beside)
            wrong = wrong or broken(pod, node)
            wrong = wrong or sum(n == node for n in where.values()) >= (m.pods or math.inf)
            if pod.cpu_millicores > cpu or pod.memory_mib > memory or wrong:
                continue
            left = (cpu - pod.cpu_millicores) / m.cpu_millicores
            left += (memory - pod.memory_mib) / m.memory_mib
            score = math.floor(50 * left)
            if best is None or score > best[0]:
                best = (score, node)
        if best is None:
            return False
        where[pod] = best[1]
        log.append((now, pod.name, best[1]))
        if pod not in first:
            first[pod] = now
            waits.append(now - pod.from_s)
        return True

    for now in sorted(t for t in times if t <= trace.seconds):
        usd += sum(machines[n.machine].usd_per_hour for n in there.values()) * (now - before) / 3600
        before = now
        for pod in trace.pods:
            if pod.to_s == now and pod not in gone and pod.from_s < now:
                where.pop(pod, None)
                if pod in waiting:
                    waiting.remove(pod)
                    if pod not in first:
                        waits.append(now - pod.from_s)
                gone.add(pod)
        leaving = [n.name for n in trace.nodes if n.to_s == now]
        for name in leaving + [loss.node for loss in trace.losses if loss.at_s == now]:
            if name in there:
                del there[name]
                for pod in [p for p, n in where.items() if n == name]:
                    del where[pod]
                    waiting.append(pod)
        for node in trace.nodes:
            if node.from_s == now:
                there[node.name] = node
        there = {n.name: n for n in trace.nodes if n.name in there}
        waiting = [p for p in waiting if not place(now, p)]
        for pod in trace.pods:
            if pod.from_s == now and not place(now, pod):
                waiting.append(pod)
    waits += [trace.seconds - p.from_s for p in waiting if p not in first]
    return usd, sorted(waits), log
