"""The demo's page."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from polytta.lab.bench.cell import OPTIONS
from polytta.lab.bench.tally import LAST_ANSWERS
from polytta.lab.bench.variants import VARIANTS
from polytta.lab.demo.examples import example_cards
from polytta.lab.demo.options import SEVERITY
from polytta.lab.demo.own_names import NAMES_NOTE, Answered, answer_cards
from polytta.lab.demo.run import DemoRun
from polytta.lab.demo.scores import row_score
from polytta.lab.demo.table import demo_table
from polytta.lab.pages.charts import Axis, Bar, Series, bars_svg, lines_svg
from polytta.lab.pages.confidence import risk_plot, weights_plot
from polytta.lab.pages.elements import Plot, facts, figures, note
from polytta.lab.pages.page import Section, render_page
from polytta.lab.pages.tables import as_html

CAVEAT = (
    "A stream this short shows how methods are used and compared, not which is best: the ± is one standard error over "
    "the images, and one other seed can change the order of the rows."
)


def demo_page(run: DemoRun, own_names: Sequence[Answered] = ()) -> str:
    """The whole page; with what images were taken for by names of one's own, if there are any."""
    corruptions = " and ".join(map(_spelt, run.options.corruptions))
    subject = run.options.subject
    asked = (Section("names", "Your class names", (note(NAMES_NOTE), answer_cards(own_names))),) if own_names else ()
    return render_page(
        subject.title,
        f"{subject.who} meets {corruptions}. It sees each image once, {subject.pace}, and learns from what it sees "
        "without a label. Every method starts afresh on each corruption and meets the same "
        f"{run.options.images} images in the same order.",
        (
            Section("results", "Results", (as_html(demo_table(run)), note(_table_note(run)))),
            Section("plots", "Gains and costs", (figures(_plots(run)),)),
            Section("examples", "What the model saw", tuple(_examples(run))),
            *asked,
            Section("settings", "Settings", (facts(_facts(run)),)),
        ),
    )


def _spelt(corruption: str) -> str:
    return corruption.replace("_", " ")


def _table_note(run: DemoRun) -> str:
    return (
        f"{run.options.subject.when} Gain is in points over {_first(run)}, ± one standard error of the paired "
        f"difference. Calibration error: 15 bins, lower is better. Images per second: of one core. {CAVEAT}"
    )


def _first(run: DemoRun) -> str:
    """The row that gains are over."""
    return next(iter(run.options.rows))


def _plots(run: DemoRun) -> tuple[Plot, ...]:
    curves = [_accuracy_plot(run, name) for name in run.options.corruptions]
    risks = risk_plot({row: run.of_row(row) for row in run.options.rows})
    trusted = [
        weights_plot(row, run.records[row, corruption], _spelt(corruption))
        for row in run.options.rows
        for corruption in run.options.corruptions
    ]
    told = (*curves, _gain_plot(run), _time_plot(run), risks, *trusted)
    return tuple(plot for plot in told if plot is not None)


def _accuracy_plot(run: DemoRun, corruption: str) -> Plot:
    counts = np.arange(1.0, run.options.images + 1)
    # The mean of a handful of images jumps about and would set the scale for the rest.
    first = max(1, len(counts) // 10)
    lines = []
    for number, row in enumerate(run.options.rows):
        so_far = 100 * np.cumsum(run.records[row, corruption].correct) / counts
        lines.append(Series(row, number, counts[first - 1 :], so_far[first - 1 :]))
    svg = lines_svg(
        lines,
        Axis.over("images seen", (0.0, counts[-1]), about=4),
        Axis.over("accuracy so far", np.concatenate([line.y for line in lines]).tolist(), " %"),
        f"Accuracy so far on {_spelt(corruption)}, per method",
    )
    caption = f"Share of all images up to here that were right, from image {first} on."
    return Plot(f"Accuracy so far: {_spelt(corruption)}", svg, caption)


def _gain_plot(run: DemoRun) -> Plot:
    bars = []
    for number, row in enumerate(run.options.rows):
        score = row_score(run, row)
        bars.append(Bar(row, number, 100 * score.gain, 100 * score.gain_error))
    description = "Gain in accuracy over the source model, per method"
    svg = bars_svg(bars[1:], f"points of accuracy over {_first(run)}", description, signed=True)
    return Plot(
        f"Gain over {_first(run).lower()}, all images", svg, "Thin lines: one standard error of the paired difference."
    )


def _time_plot(run: DemoRun) -> Plot:
    bars = [
        Bar(row, number, 1000 / row_score(run, row).images_per_second) for number, row in enumerate(run.options.rows)
    ]
    svg = bars_svg(bars, "milliseconds per image", "Time per image, per method", signed=False)
    return Plot("What it costs", svg, "Prediction and learning together: processor time on one core.")


def _examples(run: DemoRun) -> list[str]:
    shown = min(LAST_ANSWERS, run.options.images)
    first, *_, last = run.options.rows
    parts = [
        note(
            f"The last {shown} images of each stream, not picked for their result: clean on the left, as the model got "
            "it on the right, and what it was taken for."
        )
    ]
    for corruption in run.options.corruptions:
        parts.append(f"<h3>{escape(_spelt(corruption).capitalize())}</h3>")
        parts.append(example_cards([run.records[row, corruption] for row in (first, last)]))
    return parts


def _facts(run: DemoRun) -> dict[str, str]:
    options, subject, first = run.options, run.options.subject, run.first
    model, stream = first.pins["model"], first.pins["stream"]
    rate = "" if subject.learning_rate is None else f"{subject.learning_rate:g} (SGD); "
    streams = {record.cell.corruption: record.pins["stream"]["sha256"] for record in run.of_row(first.cell.variant)}
    return {
        "Model": f"{model['id']}, weights SHA-256 {model['weights_sha256']}",
        "Images": f"{stream['domains'][0]['name'].split('/')[0]}, {options.images} of 2,000",
        "Corrupted data": "generated by polytta with the constants of CIFAR-10-C; not the published CIFAR-10-C files",
        "Corruptions": f"{', '.join(options.corruptions)}, severity {SEVERITY} of 5; {subject.corruptions_reason}",
        "Stream": f"{first.cell.scenario}, batch size {first.cell.batch_size}, a fresh model per corruption",
        "Stream SHA-256": "; ".join(f"{corruption} {sha256}" for corruption, sha256 in streams.items()),
        "Seed": str(options.seed),
        "Learning rate": f"{rate}{subject.learning_rate_reason}",
        "Rows": "; ".join(f"{row}: {row_description(settings)}" for row, settings in options.rows.items()),
        "Time": f"{run.seconds:.0f} s in all",
        "Versions": ", ".join(f"{name} {value}" for name, value in first.environment.items()),
    }


def row_description(settings: Mapping[str, Any]) -> str:
    """A row in words."""
    method, particles, diversity, lenses = (
        settings.get(name, OPTIONS[name]) for name in ("method", "particles", "diversity", "lenses")
    )
    if settings == VARIANTS["default"]:
        return "the default, ways to look times paces of learning, weighed by evidence"
    if particles == 1:
        return "never adapts" if method == "source" else "one model"
    if lenses not in (None, "none"):
        return f"{particles} x {method}, each looking through a lens of its own, weighed by evidence"
    return f"{particles or 3} x {method}, " + ("independent" if diversity == "none" else f"{diversity} interaction")
