"""``polytta perf``."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Perf:
    """Measure on a CUDA device what particles cost, against one model adapted the usual way."""

    out: Path = Path("polytta-perf")
    """Folder for performance.json, performance.md and the drawing; performance.partial.json is what an interrupted run
    had measured."""
    quick: bool = False
    """Only three particles with Grad against the reference, once; prints and writes nothing."""
    show: Path | None = None
    """Make the page from this performance.json instead of measuring."""

    def run(self) -> None:
        """Measures, prints and writes."""
        from polytta.lab.perf import Results, page, run
        from polytta.lab.perf.picture import growth_svg

        if self.quick:
            for figure in run(quick=True).figures:
                name = f"{figure.model}, batch {figure.batch}, {figure.variant}, K = {figure.particles}, {figure.how}"
                print(f"{name:<80}{figure.middle:9.2f} ms{figure.memory:8.0f} MiB")
            return
        partial = self.out / "performance.partial.json"
        results = run(so_far=lambda measured: measured.save(partial)) if self.show is None else Results.load(self.show)
        self.out.mkdir(parents=True, exist_ok=True)
        if self.show is None:
            results.save(self.out / "performance.json")
            partial.unlink(missing_ok=True)
        (self.out / "performance.md").write_text(page(results))
        (self.out / "performance-growth.svg").write_text(growth_svg(results))
        print(page(results))
