"""How the demo's learning rate was chosen: on other corruptions than those it shows, at the same severity.

    python scripts/tune_demo_lr.py

The rate with the highest mean accuracy of Tent and DeYO over the four extra corruptions is the demo's.
"""

from polytta.data.corruptions import EXTRA_CORRUPTIONS
from polytta.lab.demo.run import run_demo
from polytta.lab.demo.settings import Row, Settings
from polytta.lab.demo.table import as_text, demo_table

RATES = (6.25e-5, 1.25e-4, 2.5e-4, 5e-4, 1e-3)
ROWS = (Row("Source", "source"), Row("Tent", "tent"), Row("DeYO", "deyo"))
SEED = 7


def main() -> None:
    means = {}
    for rate in RATES:
        outcome = run_demo(
            Settings(images=250, seed=SEED, corruptions=EXTRA_CORRUPTIONS, learning_rate=rate, rows=ROWS)
        )
        means[rate] = sum(outcome.score(row).mean_accuracy for row in ROWS[1:]) / len(ROWS[1:])
        print(f"\nlearning rate {rate:g}: mean accuracy {100 * means[rate]:.2f} %\n{as_text(demo_table(outcome))}\n")
    print(f"best: {max(means, key=means.__getitem__):g}")


if __name__ == "__main__":
    main()
