"""Evolutionary and swarm methods over any encoder."""
