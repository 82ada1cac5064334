"""The page of a benchmark: per panel its tables and diagrams, then sample images, facts, and every record."""

from collections.abc import Mapping, Sequence
from html import escape

from polytta.lab.pages.bench.diagrams import (
    Records,
    calibration_plots,
    cost_plot,
    disagreement_plots,
    particle_plots,
    selective_plot,
    stream_plot,
    trust_plots,
    weights_plots,
)
from polytta.lab.pages.bench.panel import Panel
from polytta.lab.pages.bench.panel_tables import accuracy_table, summary_table
from polytta.lab.pages.bench.pins import environments, pinned_facts
from polytta.lab.pages.bench.results import NOTE
from polytta.lab.pages.bench.samples import example_images, own_images
from polytta.lab.pages.bench.short_names import short_name
from polytta.lab.pages.elements import facts, figures, note, pictures
from polytta.lab.pages.page import Section, render_page
from polytta.lab.pages.tables import as_html


def bench_page(
    panels: Sequence[Panel], records: Records, cells_folder: str, places: Mapping[str, str] | None = None
) -> str:
    """The whole page.

    Args:
        panels: what to show.
        records: for diagrams; may lack some or all of those the panels tell of.
        cells_folder: where their files lie, seen from the page.
        places: where datasets of one's own lie, by name; their images are shown instead of a bundled one.
    """
    cells = sum(1 for panel in panels for _ in panel.entries())
    models = {str(panel.fields["model"]) for panel in panels}
    lead = (
        f"{cells:,} cells over {len(models)} model{'s' if len(models) > 1 else ''}. Every model meets a stream of "
        f"images once, predicts, and then learns from them without labels. Red is below the source model. {NOTE}"
    )
    sections = [_panel_section(panel, records) for panel in panels]
    sections.append(_samples(tuple(panels), places or {}))
    if records:
        sections.append(_facts(records))
    sections.append(_record_list(panels, records, cells_folder))
    return render_page("Test-time adaptation benchmark", lead, sections)


def _panel_section(panel: Panel, records: Records) -> Section:
    parts = [note(f"{panel.description}."), as_html(accuracy_table(panel)), as_html(summary_table(panel))]
    curves = (stream_plot(panel, records), cost_plot(panel), selective_plot(panel, records))
    large = [plot for plot in curves if plot is not None]
    large += trust_plots(panel, records) + weights_plots(panel, records)
    if large:
        parts.append(figures(large))
    for heading, plots in (
        ("Calibration", calibration_plots(panel, records)),
        ("Disagreement and error", disagreement_plots(panel, records)),
        ("Particles", particle_plots(panel, records)),
    ):
        if plots:
            parts += [f"<h3>{heading}</h3>", figures(plots, small=True)]
    return Section(panel.anchor, panel.title, tuple(parts))


def _samples(panels: tuple[Panel, ...], places: Mapping[str, str]) -> Section:
    own = own_images(panels, places)
    parts = []
    for dataset, shown in own.items():
        parts += [note(f"An image of {dataset}, as the models got it."), pictures(shown)]
    others = tuple(panel for panel in panels if str(panel.fields["dataset"]) not in own)
    if others:
        names = ", ".join(dict.fromkeys(str(panel.fields["dataset"]) for panel in others))
        explanation = (
            f"For {names}: one bundled CIFAR-10 image under each corruption and severity, with the constants of "
            "CIFAR-10-C. Other datasets have the same corruptions with constants of their own."
        )
        parts += [note(explanation), pictures(example_images(others))]
    return Section("samples", "What the images look like", tuple(parts))


def _facts(records: Records) -> Section:
    listed = "\n".join(f"<li>{escape(fact)}</li>" for fact in pinned_facts(records.values()))
    return Section(
        "facts",
        "What pins these results",
        (
            facts(environments(records.values())),
            f"<details><summary>Models, data, streams and settings</summary>\n<ul>{listed}</ul></details>",
        ),
    )


def _record_list(panels: Sequence[Panel], records: Records, cells_folder: str) -> Section:
    parts = [
        note(f"A record's name is a hash of everything that decides its numbers; the files lie in {cells_folder}.")
    ]
    for panel in panels:
        lines = []
        for row in panel.rows:
            for column in panel.columns:
                own = row.entries.get(column, ())
                keys = "".join(_link(e.key, e.cell["seed"], cells_folder if e.key in records else None) for e in own)
                if keys:
                    where = escape(short_name(column))
                    lines.append(f"<tr><th>{escape(row.name)}</th><td>{where}</td><td>{keys}</td></tr>")
        table = f'<table class="records"><tbody>\n{"".join(lines)}\n</tbody></table>'
        parts.append(f"<details><summary>{escape(panel.title)}</summary>\n{table}</details>")
    return Section("records", "Records", tuple(parts))


def _link(key: str, seed: int, cells_folder: str | None) -> str:
    name = escape(key)
    text = f"<code>{name}</code> (seed {escape(str(seed))})"
    if cells_folder is None:
        return f'<span id="{name}">{text}</span> '
    return f'<a id="{name}" href="{escape(cells_folder)}/{name}.json">{text}</a>'
