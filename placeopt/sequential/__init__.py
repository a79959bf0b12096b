"""Face 3, one decision at a time: state, legal actions, step, cost."""
