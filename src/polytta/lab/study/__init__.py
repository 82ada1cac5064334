"""What adaptation does to a model besides its accuracy: how far solutions lie apart, and what lies between."""
