"""The frozen network: its norm layers, which of them adapt, where their parameters lie, and copies that share weights."""
