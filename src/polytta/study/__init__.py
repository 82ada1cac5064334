"""Studies of what adaptation does to a model, beyond its accuracy: how far solutions lie apart, and what lies between."""
