"""Hand-written SVG charts, one file per kind, over the axes and frames of ``frame``.

Colours are the page's: series number i is drawn in the CSS class ``s<i>``, so one picture serves light and dark.
"""

from polytta.lab.pages.charts.bars import Bar as Bar
from polytta.lab.pages.charts.bars import bars_svg as bars_svg
from polytta.lab.pages.charts.dotted_line import dotted_line_svg as dotted_line_svg
from polytta.lab.pages.charts.frame import Axis as Axis
from polytta.lab.pages.charts.frame import Series as Series
from polytta.lab.pages.charts.heatmap import heatmap_svg as heatmap_svg
from polytta.lab.pages.charts.lines import lines_svg as lines_svg
from polytta.lab.pages.charts.matrix import matrix_svg as matrix_svg
from polytta.lab.pages.charts.scatter import scatter_svg as scatter_svg
from polytta.lab.pages.charts.surface import surface_svg as surface_svg
from polytta.lab.pages.charts.timeline import timeline_svg as timeline_svg
from polytta.lab.pages.charts.trajectories import trajectories_svg as trajectories_svg
