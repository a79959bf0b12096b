"""From a dump of a cluster to an answer: what it costs, what a smaller one would, and why not less.

==============  ====================================================================================
``situation``   a cluster, its cheapest plan, and the nodes that are paid for then
``lifts``       what each thing that holds pods would save if it were lifted: solved again
``wishes``      changes of what pods ask for and of what may be bought
``answer``      all of it, and why each node that stays is still there, as a document
``pages``       the answer for a terminal, for a pull request, for a report; with all in a folder
==============  ====================================================================================
"""
