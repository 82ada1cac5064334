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
class Value:
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
class Line:
    """A named row; ``series`` is its colour in plots, ``part`` says that the next row belongs to the same thing."""

    name: str
    values: tuple[Value, ...]
    series: int | None = None
    part: bool = False


@dataclass(frozen=True)
class Matrix:
    """Rows under a header, whose first cell heads the names."""

    header: tuple[str, ...]
    lines: tuple[Line, ...]


def as_text(matrix: Matrix) -> str:
    """Columns lined up, the first to the left and the others to the right; * after the best."""
    rows = [list(matrix.header)]
    rows += [
        [line.name, *(value.plain + ("*" if value.best else "") for value in line.values)] for line in matrix.lines
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(matrix.header))]
    lines = [
        "  ".join(cell.rjust(width) if column else cell.ljust(width) for column, (cell, width) in enumerate(pairs))
        for pairs in (list(zip(row, widths, strict=True)) for row in rows)
    ]
    return "\n".join((lines[0], "-" * len(lines[0]), *lines[1:]))


def as_markdown(matrix: Matrix) -> str:
    """A pipe table; the best in bold."""
    head = "| " + " | ".join(matrix.header) + " |"
    rule = "|" + "|".join([":--", *["--:"] * (len(matrix.header) - 1)]) + "|"
    body = ["| " + " | ".join([line.name, *map(_markdown_cell, line.values)]) + " |" for line in matrix.lines]
    return "\n".join((head, rule, *body))


def as_latex(matrix: Matrix, caption: str, label: str) -> str:
    """A booktabs table; the best in bold."""
    head = " & ".join(map(_latex, matrix.header))
    body = "\n".join(" & ".join([_latex(line.name), *map(_latex_cell, line.values)]) + r" \\" for line in matrix.lines)
    columns = "l" + "r" * (len(matrix.header) - 1)
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


def as_html(matrix: Matrix) -> str:
    """A dense table; rows carry the colour of their series."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in matrix.header)
    body = "\n".join(_html_line(line) for line in matrix.lines)
    kind = "dense stacked" if len(matrix.header) > 12 else "dense"
    table = f'<table class="{kind}"><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>'
    return f'<div class="wide">{table}</div>'


def _markdown_cell(value: Value) -> str:
    return f"**{value.plain}**" if value.best else value.plain


def _latex_cell(value: Value) -> str:
    text = rf"\textbf{{{_latex(value.text)}}}" if value.best else _latex(value.text)
    mark = rf"\textsuperscript{{{_latex(value.mark)}}}" if value.mark else ""
    return text + mark + (rf" {{\scriptsize$\pm${value.spread}}}" if value.spread else "")


def _latex(text: str) -> str:
    return "".join(_LATEX_SPECIAL.get(letter, letter) for letter in text)


def _html_line(line: Line) -> str:
    key = "" if line.series is None else f'<i class="key s{line.series}"></i>'
    cells = "".join(map(_html_cell, line.values))
    kind = ' class="part"' if line.part else ""
    return f'<tr{kind}><th scope="row">{key}{escape(line.name)}</th>{cells}</tr>'


def _html_cell(value: Value) -> str:
    kinds = " ".join(name for name, on in (("best", value.best), ("below", value.below)) if on)
    mark = f"<sup>{escape(value.mark)}</sup>" if value.mark else ""
    spread = f" <small>± {escape(value.spread)}</small>" if value.spread else ""
    start = f'<td class="{kinds}">' if kinds else "<td>"
    return f"{start}{escape(value.text)}{mark}{spread}</td>"
