"""Datasets, corruptions and streams."""
