"""The engine for GPUs and all that only it needs: nothing outside imports any of it. See README.md beside this file."""

from polytta.gpu.graph import GraphEngine as GraphEngine
