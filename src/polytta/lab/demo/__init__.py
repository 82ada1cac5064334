"""A small benchmark on bundled images with a page of its own: what `polytta demo` runs."""
