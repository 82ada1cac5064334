"""A short comparison of methods on bundled images: what `polytta demo` runs."""
