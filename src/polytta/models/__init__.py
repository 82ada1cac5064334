"""Source models: small bundled classifiers and a factory over the common model zoos."""
