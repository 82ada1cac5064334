"""``python -m polytta``."""

import sys

from polytta.cli import main

# Worker processes import this module too; only the first process is the program.
if __name__ == "__main__":
    sys.exit(main())
