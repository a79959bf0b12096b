"""Kubernetes in and out, offline: what `kubectl` and `helm template` print becomes instances; no cluster is asked.

====================  ==========================================================================================
``quantities``        ``500Mi``, ``100m``: exact whole numbers
``reading``           JSON and YAML files, read safely: sizes, depth and aliases are bounded, nothing is executed
``origin``            what the names of an imported instance are in the cluster
====================  ==========================================================================================
"""
