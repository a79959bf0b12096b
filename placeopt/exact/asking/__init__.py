"""Questions about a model that are answered without its whole front; `placeopt.ask` is the door."""
