"""Kubernetes in and out, offline: no cluster is asked.

What `kubectl` and `helm template` print becomes instances; plans become commands.

==============================  ====================================================================
``quantities``, ``tables``      ``500Mi``, ``100m`` as exact whole numbers; CSV by file and line
``yaml_reading``, ``reading``   YAML and JSON within limits, nothing executed; values with lines
``objects``, ``manifests``      nodes, pods, workloads; all the objects of the files
``sizes``, ``units``            what pods ask for; the replicas, and which must stay
``sites``                       nodes that take part, and which pods may go where
``edges``, ``latency``          who calls whom; latencies between places
``prices``, ``price_files``     what machines cost: tables, overlays
``new_requests``, ``gathered``  tables and options that no cluster knows
``to_...``                      a cluster as an instance of a problem
``importing``, ``notes``        a whole import; the report of what was assumed
``origin``                      what the names of an imported instance are in the cluster
``export``                      plans as steps, commands, policies
==============================  ====================================================================
"""
