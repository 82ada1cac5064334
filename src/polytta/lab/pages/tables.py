"""One table, four ways to write it: text for the terminal, Markdown, LaTeX and HTML."""

from dataclasses import dataclass
from html import escape

_LATEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "θ": r"$\theta$",
    "λ": r"$\lambda$",
}


@dataclass(frozen=True)
class TableCell:
    """One cell.

    Attributes:
        text: what it says.
        spread: standard deviation, written after ±.
        best: the best of its column.
        below: worse than the reference row.
        mark: sign that points to a remark below the table.
    """

    text: str
    spread: str = ""
    best: bool = False
    below: bool = False
    mark: str = ""

    @property
    def plain(self) -> str:
        """All of it in one line of text."""
        return f"{self.text}{self.mark}" + (f" ± {self.spread}" if self.spread else "")


@dataclass(frozen=True)
class TableRow:
    """A named row; ``series`` is its colour in charts, ``part`` says that the next row belongs to the same thing."""

    name: str
    cells: tuple[TableCell, ...]
    series: int | None = None
    part: bool = False


@dataclass(frozen=True)
class Table:
    """Rows under a header, whose first cell heads the names."""

    header: tuple[str, ...]
    rows: tuple[TableRow, ...]


def as_text(table: Table) -> str:
    """Columns lined up, the first to the left and the others to the right; * after the best."""
    rows = [list(table.header)]
    rows += [[row.name, *(cell.plain + ("*" if cell.best else "") for cell in row.cells)] for row in table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.header))]
    lines = [
        "  ".join(text.rjust(width) if column else text.ljust(width) for column, (text, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join((lines[0], "-" * len(lines[0]), *lines[1:]))


def as_markdown(table: Table) -> str:
    """A pipe table; the best in bold."""
    head = "| " + " | ".join(map(markdown_text, table.header)) + " |"
    rule = "|" + "|".join([":--", *["--:"] * (len(table.header) - 1)]) + "|"
    body = ["| " + " | ".join([markdown_text(row.name), *map(_markdown_cell, row.cells)]) + " |" for row in table.rows]
    return "\n".join((head, rule, *body))


def as_latex(table: Table, caption: str, label: str) -> str:
    """A booktabs table; the best in bold."""
    head = " & ".join(map(_latex, table.header))
    body = "\n".join(" & ".join([_latex(row.name), *map(_latex_cell, row.cells)]) + r" \\" for row in table.rows)
    columns = "l" + "r" * (len(table.header) - 1)
    return "\n".join(
        (
            r"\begin{table*}[t]",
            r"\centering",
            rf"\caption{{{_latex(caption)}}}",
            rf"\label{{{label}}}",
            r"\resizebox{\linewidth}{!}{%",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head + r" \\",
            r"\midrule",
            body,
            r"\bottomrule",
            r"\end{tabular}}",
            r"\end{table*}",
        )
    )


def as_html(table: Table) -> str:
    """A dense table; rows carry the colour of their series."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in table.header)
    body = "\n".join(map(_html_row, table.rows))
    kind = "dense stacked" if len(table.header) > 12 else "dense"
    element = f'<table class="{kind}"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
    return f'<div class="wide">{element}</div>'


def _markdown_cell(cell: TableCell) -> str:
    text = markdown_text(cell.plain)
    return f"**{text}**" if cell.best else text


def markdown_text(text: str) -> str:
    """What would end a cell, or be taken for HTML, as a character that is only itself."""
    return " ".join(text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "&#124;").splitlines() or [""])


def _latex_cell(cell: TableCell) -> str:
    text = rf"\textbf{{{_latex(cell.text)}}}" if cell.best else _latex(cell.text)
    mark = rf"\textsuperscript{{{_latex(cell.mark)}}}" if cell.mark else ""
    return text + mark + (rf" {{\scriptsize$\pm${cell.spread}}}" if cell.spread else "")


def _latex(text: str) -> str:
    return "".join(_LATEX_SPECIAL.get(letter, letter) for letter in text)


def _html_row(row: TableRow) -> str:
    key = "" if row.series is None else f'<i class="key s{row.series}"></i>'
    cells = "".join(map(_html_cell, row.cells))
    kind = ' class="part"' if row.part else ""
    return f'<tr{kind}><th scope="row">{key}{escape(row.name)}</th>{cells}</tr>'


def _html_cell(cell: TableCell) -> str:
    kinds = " ".join(name for name, on in (("best", cell.best), ("below", cell.below)) if on)
    mark = f"<sup>{escape(cell.mark)}</sup>" if cell.mark else ""
    spread = f" <small>± {escape(cell.spread)}</small>" if cell.spread else ""
    start = f'<td class="{kinds}">' if kinds else "<td>"
    return f"{start}{escape(cell.text)}{mark}{spread}</td>"
