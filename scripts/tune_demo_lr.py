"""How the demo's learning rate was chosen: on other corruptions than those it shows, at the same severity.

    python scripts/tune_demo_lr.py

The rate with the highest mean accuracy of Tent and DeYO over the four extra corruptions is the demo's.
"""

from dataclasses import replace

from polytta.data.corruptions import EXTRA_CORRUPTIONS
from polytta.lab.demo.options import CLASSIFIER, ROWS, DemoOptions
from polytta.lab.demo.run import run_demo
from polytta.lab.demo.scores import row_score
from polytta.lab.demo.table import demo_table
from polytta.lab.pages.tables import as_text

RATES = (6.25e-5, 1.25e-4, 2.5e-4, 5e-4, 1e-3)
TUNED = ("Tent", "DeYO")
SEED = 7


def main() -> None:
    rows = {label: ROWS[label] for label in ("Source", *TUNED)}
    means = {}
    for rate in RATES:
        subject = replace(CLASSIFIER, learning_rate=rate, rows=rows)
        run = run_demo(DemoOptions(images=250, seed=SEED, corruptions=EXTRA_CORRUPTIONS, subject=subject))
        means[rate] = sum(row_score(run, row).mean_accuracy for row in TUNED) / len(TUNED)
        print(f"\nlearning rate {rate:g}: mean accuracy {100 * means[rate]:.2f} %\n{as_text(demo_table(run))}\n")
    print(f"best: {max(means, key=means.__getitem__):g}")


if __name__ == "__main__":
    main()
