"""The frozen network: norm layers, which of them adapt, where their parameters lie, copies that share weights."""
