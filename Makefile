# Every target works on its own on a machine with Python 3.11 and nothing installed.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
DEMO ?=

.PHONY: demo test test-kernels test-long test-clip test-numerical check docs dist bench bench-gpu clean

demo: $(VENV)/.base
	$(RUN) -m polytta demo $(DEMO)

test: $(VENV)/.dev
	$(RUN) -m pytest -n 2

# GPU kernels in Triton's interpreter, which must be chosen before anything is imported.
test-kernels: $(VENV)/.dev
	TRITON_INTERPRET=1 $(RUN) -m pytest -n 2 tests/gpu/kernels tests/gpu/test_stem.py

# Whole programs, clusters, zoos and tables of the paper.
test-long: $(VENV)/.dev
	$(RUN) -m pytest -n 2 -m long

# CLIP models of their true shapes, every method on each: minutes.
test-clip: $(VENV)/.dev
	$(RUN) -m pytest -n 2 -m big tests/clip

# Other processors add in another order; torch can be told to do as if it were on one.
NUMERICAL := tests/aggregate tests/checks tests/clip tests/diversity tests/guard tests/lab/bench tests/methods tests/models \
	tests/engine tests/network tests/optim tests/particles tests/report tests/views tests/test_adapter.py tests/test_api.py \
	tests/test_export.py tests/test_noise.py tests/test_persist.py tests/test_populations.py
test-numerical: $(VENV)/.dev
	ATEN_CPU_CAPABILITY=default $(RUN) -m pytest -n 2 $(NUMERICAL)
	ATEN_CPU_CAPABILITY=avx2 $(RUN) -m pytest -n 2 $(NUMERICAL)

check: $(VENV)/.dev
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(VENV)/bin/lint-imports --no-cache

# The site, into site/; anything to complain about ends it.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet

# What would go to the package index, and whether it would be taken.
dist: $(VENV)/.dev
	rm -rf dist
	$(RUN) -m build --no-isolation --outdir dist . >/dev/null
	$(RUN) -m twine check --strict dist/*

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
	rm -rf $(VENV) build dist site polytta-demo .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(RUN):
	$(PYTHON) -m venv $(VENV)

# The stamps make a second run start at once; a change of the requirements installs again.
$(VENV)/.base: pyproject.toml constraints.txt | $(RUN)
	$(RUN) -m pip install --quiet -e . -c constraints.txt
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(RUN)
	$(RUN) -m pip install --quiet -e '.[dev]' -c constraints.txt
	$(RUN) -m polytta.models.fit_torchvision
	touch $@ $(VENV)/.base
