"""From a dump of a cluster to an answer: what it costs, what a smaller one would, and why not less.

==============  ====================================================================================
``situation``   a cluster, its cheapest plan, and the nodes that are paid for then
``lifts``       what each thing that holds pods would save if it were lifted: solved again
``wishes``      changes of what pods ask for and of what may be bought
``reasons``     why each node that stays is still there
``answer``      all of it, as a document
``pages``       the answer for a terminal, for a pull request, for a report
``files``       the answer with the front, the steps and the script, in a folder
==============  ====================================================================================
"""
