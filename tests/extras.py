"""Marks for tests that need a library which is not installed everywhere."""

import importlib.util

import pytest


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed")
