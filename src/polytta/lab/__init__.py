"""The laboratory: benchmarks, studies, pages. It stands on the library, and the library never enters it."""
