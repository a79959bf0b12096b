"""Kinds of events, in the order in which those of one instant are taken."""

END, NODE_READY, POD_READY, NODE_GONE, LOST, NODE_COMES, PRICE, ARRIVAL, STEP, BUY, TICK = range(11)
