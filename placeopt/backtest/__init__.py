"""Backtest: what would this policy have cost on a cluster's last month?

==============  ====================================================================
``trace``       the document: machines, nodes, pods, prices and losses over time
``readers``     traces from CSV, Prometheus exports, a generator
``arrays``      a trace as arrays
``room``        room of nodes in arrays; filters and scores of kube-scheduler, one kernel
``engine``      the clock, events, the heap; pods of a revision follow those of the one before
``execution``   plans carried out step by step
``ledger``      money, waits, disruptions
``policies``    one file each: `decide(view, now)` returns actions
``bound``       the oracle's bound
``study``       policies and seeds in parallel, resumable
``page``        the page
``command``     ``placeopt backtest``
==============  ====================================================================
"""

from placeopt.core.door import Door

DOOR = Door(
    name="backtest",
    commands="placeopt.backtest.command:register",
    schemas={"trace": "placeopt.backtest.trace:ClusterTrace"},
    generators={"trace": "placeopt.backtest.readers.drawn:generate"},
)
