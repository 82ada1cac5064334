# Every target works on its own on a machine with Python 3.11 and nothing installed.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
DEMO ?=

.PHONY: demo test check bench bench-gpu clean

demo: $(VENV)/.base
	$(RUN) -m polytta demo $(DEMO)

# GPU kernels run in Triton's interpreter, which must be chosen before anything is imported.
test: $(VENV)/.dev
	$(RUN) -m pytest -n 2
	TRITON_INTERPRET=1 $(RUN) -m pytest -n 2 tests/gpu/kernels tests/gpu/test_stem.py

check: $(VENV)/.dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

# glibc gives large blocks back to the system after every use, and the page faults of taking them again would be what
# is measured at larger batches; both engines are timed with that turned off.
bench: export MALLOC_TRIM_THRESHOLD_ = 8589934592
bench: export MALLOC_MMAP_THRESHOLD_ = 1073741824
bench: $(VENV)/.dev
	$(RUN) benchmarks/engines.py
	$(RUN) benchmarks/corruptions.py

bench-gpu: $(VENV)/.dev
	$(RUN) -m polytta perf --out docs

clean:
	rm -rf $(VENV) build dist polytta-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(RUN):
	$(PYTHON) -m venv $(VENV)

# The stamps make a second run start at once; a change of the requirements installs again.
$(VENV)/.base: pyproject.toml constraints.txt | $(RUN)
	$(RUN) -m pip install --quiet -e . -c constraints.txt
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(RUN)
	$(RUN) -m pip install --quiet -e '.[dev]' -c constraints.txt
	touch $@ $(VENV)/.base
