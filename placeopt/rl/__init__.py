"""Learning: environments, training, policies. `placeopt.environments` knows them by name."""
