# `make demo` and `make test` work from a fresh clone: each sets up its own .venv first, and again when pyproject.toml changes.

PYTHON ?= python3
BIN := .venv/bin
CORE := .venv/.placeopt-core
STAMP := .venv/.placeopt-installed
JOBS ?= 2
TORCH ?= torch==2.13.0
INSTALL := $(if $(shell command -v uv),uv pip install --quiet --python $(BIN)/python,$(BIN)/python -m pip install --quiet --disable-pip-version-check)
PYTEST := $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# Compiled kernels, kept outside the tree: a checkout finds what another one compiled of the same sources.
export PLACEOPT_KERNELS ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/placeopt-kernels
# Bytecode is kept, whatever the environment says: hundreds of tests start processes of their own.
unexport PYTHONDONTWRITEBYTECODE

# Tests that call kernels directly, and that reach them from documents, for the run with checked indices.
KERNEL_TESTS := tests/core/test_kernels.py tests/temporal/exact tests/rolling_update/test_packing.py \
	tests/multi_cluster/test_sequence.py tests/edge_cloud/test_closing.py tests/edge_cloud/test_homes.py \
	tests/edge_cloud/test_diving.py tests/backtest/test_twin.py tests/backtest/test_execution.py tests/test_kernels_on_documents.py

# The core, and every problem's instance, encoder, decisions and model: what most changes can break.
QUICK_TESTS := tests/test_architecture.py tests/test_public.py tests/test_instances.py tests/test_infeasible.py tests/core \
	tests/*/test_instance.py tests/*/test_encoder.py tests/*/test_sequence.py tests/*/test_model.py

.PHONY: demo test test-quick thorough suite lint bounds rl docs papers pages mutants wheel first-hour clean

demo: $(CORE)
	mkdir -p out
	$(BIN)/placeopt solve instances/temporal/aws-50.json --method nsga3 --seed 1 -o out/aws-50-front.json --plot out/aws-50-front.html

# Style and types are checked beside the tests: mypy has one core busy for most of a minute.
test: $(STAMP)
	$(MAKE) -j2 lint suite

# Under two minutes on two quiet cores, once kernels are compiled.
test-quick: $(STAMP)
	$(PYTEST) $(QUICK_TESTS)

# Kernels that nobody asked for in a month go.
suite: $(STAMP)
	-test ! -d $(PLACEOPT_KERNELS) || find $(PLACEOPT_KERNELS) -type f -mtime +30 -delete
	$(PYTEST) --cpu

# All cases, where the suite tries a third, or a tenth of what is heavy: TESTS=tests/exact those of a folder; MINUTES=5 begins no test
# after these minutes.
thorough: $(STAMP)
	PLACEOPT_THOROUGH=1 $(PYTEST) $(TESTS) $(if $(MINUTES),--minutes $(MINUTES))

# Kernels with every index checked; what was compiled so is kept beside the others.
bounds: $(STAMP)
	cache=$$(mktemp -d) && NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$$cache $(PYTEST) -p no:cacheprovider $(KERNEL_TESTS); \
	failed=$$?; rm -rf $$cache; exit $$failed

# The site, in build/site: warnings are errors, nothing is fetched while it is built.
docs: $(STAMP)
	$(INSTALL) -e '.[docs]'
	$(BIN)/python docs/build.py build/site

# Every table, figure and numbered claim of the five papers: build/papers.html. QUICK=1 takes under 10 minutes and writes
# out/papers/papers.html; ONLY=name,name measures these alone, MINUTES=5 ends long ones early. What an earlier run left is taken up.
# What trains needs `make rl`; without it the committed results stay.
papers: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e papers
	$(BIN)/python papers/run.py $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(MINUTES),--minutes $(MINUTES))

# Pages under benchmarks/ and papers/: an edit by hand is an error, and so is a page older than its script.
pages: $(STAMP)
	$(BIN)/python benchmarks/stamps.py

# Faults put into the judges, one at a time, and whether a test notices: benchmarks/mutants.md.
mutants: $(STAMP)
	$(BIN)/python benchmarks/mutants.py

# What would be released, in dist: the sources, a wheel for every platform, and one for this platform and Python that brings
# compiled kernels; their metadata checked. The kernels stay in placeopt/_compiled: the tests use them.
wheel: $(STAMP)
	$(INSTALL) build twine
	rm -rf dist placeopt/_compiled
	$(BIN)/python -m build --outdir dist .
	$(BIN)/placeopt warm-up --any-cpu --jobs $(JOBS)
	$(BIN)/python -m build --wheel --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

# A stranger's first hour: the wheel with kernels in an environment of its own, outside this folder, from an empty cache; the first
# front by the wheel without kernels as well.
first-hour: wheel
	$(BIN)/python tests/first_hour/run.py $$(ls dist/*.whl | grep -v none-any) --light dist/*-none-any.whl

# README's lines have to please a strict reader, too.
lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy
	@mkdir -p build
	@awk '/^```python/ {shown = 1; next} /^```/ {shown = 0} shown' README.md > build/readme.py
	$(BIN)/mypy --strict build/readme.py

# What trains policies: torch by its version first, so that nothing else picks one, then the rest of the extra.
rl: $(STAMP)
	$(INSTALL) $(TORCH)
	$(INSTALL) -e '.[rl]'

# What users have.
$(CORE): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e .
	touch $(CORE)

# torch is not among the extras installed here: it is large. What needs it says so, and its tests are skipped; `make rl` adds it.
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(INSTALL) -e '.[jmetal,plot,dev]'
	touch $(CORE) $(STAMP)

clean:
	rm -rf out build dist placeopt/_compiled .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find placeopt tests -name '*.nb[ic]' -delete
