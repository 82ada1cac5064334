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
    goals: bool = False
    """Only three particles with Grad against the reference; what else OUT/performance.json holds stays as it was."""
    show: Path | None = None
    """Make the page from this performance.json instead of measuring."""

    def run(self) -> None:
        """Measures, prints and writes."""
        from polytta.lab.perf.growth import growth_svg
        from polytta.lab.perf.markdown import performance_markdown
        from polytta.lab.perf.measurements import Measurements
        from polytta.lab.perf.run import measure_all

        if self.quick:
            for m in measure_all(quick=True).measured:
                name = f"{m.model}, batch {m.batch}, {m.variant}, K = {m.particles}, {m.engine} {m.precision}"
                print(f"{name:<80}{m.median:9.2f} ms{m.memory:8.0f} MiB")
            return
        if self.show is None:
            kept, partial = self.out / "performance.json", self.out / "performance.partial.json"
            before = Measurements.load(kept, "--goals") if self.goals else None
            measurements = measure_all(goals_only=self.goals, after_table=lambda measured: measured.save(partial))
            measurements = measurements if before is None else before.renewed(measurements)
            measurements.save(kept)
            partial.unlink(missing_ok=True)
        else:
            measurements = Measurements.load(self.show)
        page = performance_markdown(measurements)
        drawing = growth_svg(measurements)
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "performance.md").write_text(page)
        (self.out / "performance-growth.svg").write_text(drawing)
        print(page)
