"""Kubernetes in and out, offline: what `kubectl` and `helm template` print becomes instances, plans become commands; no cluster is asked.

=================================  ===================================================================================
``quantities``, ``tables``         ``500Mi``, ``100m`` as exact whole numbers; CSV by file and line
``yaml_reading``, ``reading``      YAML and JSON within bounds, nothing executed; every value with its line
``objects``, ``manifests``         nodes, pods, workloads ... as far as placement needs them; a cluster from files
``sizes``, ``units``, ``sites``    what pods ask for; which must stay; nodes that take part, and who may go where
``edges``, ``latency``             who calls whom; how far places are from each other
``prices``, ``price_files``        what machines cost: tables, overlays
``new_requests``, ``gathered``     what no cluster knows: tables and options
``to_...``                         a cluster as an instance of a problem
``importing``, ``notes``           all of it in one go; the report of what was assumed
``origin``                         what the names of an imported instance are in the cluster
``export``                         plans as steps, commands, policies
=================================  ===================================================================================
"""
