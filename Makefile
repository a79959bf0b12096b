# `make demo` and `make test` work from a fresh clone: each sets up its own .venv first, and again when pyproject.toml changes.

PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.placeopt-installed
JOBS ?= 2
TORCH ?= torch==2.13.0

# Tests that call kernels directly, for the run with checked indices.
KERNEL_TESTS := tests/core/test_kernels.py tests/temporal/exact tests/rolling_update/test_packing.py \
	tests/multi_cluster/test_simulator.py tests/edge_cloud/test_kernels.py \
	tests/edge_cloud/test_columns.py tests/edge_cloud/test_homes.py tests/edge_cloud/test_diving.py

# The core, and every problem's instance, encoder, decisions and model: what most changes can break.
QUICK_TESTS := tests/test_architecture.py tests/test_public.py tests/test_instances.py tests/test_infeasible.py tests/core \
	tests/*/test_instance.py tests/*/test_encoder.py tests/*/test_sequence.py tests/*/test_model.py

.PHONY: demo test test-quick thorough suite lint bounds rl docs papers pages wheel first-hour clean

demo: $(STAMP)
	mkdir -p out
	$(BIN)/placeopt solve instances/temporal/aws-50.json --method nsga3 --seed 1 -o out/aws-50-front.json --plot out/aws-50-front.html

# Style and types are checked beside the tests: mypy has one core busy for most of a minute.
test: $(STAMP)
	$(MAKE) -j2 lint suite

# Under two minutes on two quiet cores, once kernels are compiled.
test-quick: $(STAMP)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(QUICK_TESTS)

# Bytecode is kept, whatever the environment says: hundreds of tests start processes of their own.
suite: $(STAMP)
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $(JOBS) --dist worksteal

# The suite with all cases that property tests can try, for a release: some 20 minutes.
thorough: $(STAMP)
	PLACEOPT_THOROUGH=1 $(MAKE) suite

# Kernels with every index checked, compiled from an empty cache.
bounds: $(STAMP)
	cache=$$(mktemp -d) && NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$$cache \
		$(BIN)/python -m pytest -n $(JOBS) --dist worksteal -p no:cacheprovider $(KERNEL_TESTS); \
	failed=$$?; rm -rf $$cache; exit $$failed

# The site, in build/site: warnings are errors, nothing is fetched while it is built.
docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/python docs/build.py build/site

# Every table, figure and numbered claim of the five papers: docs/papers.html. QUICK=1 takes under 10 minutes and writes
# out/papers/papers.html; ONLY=name,name measures these alone, MINUTES=5 ends long ones early. What an earlier run left is taken up.
# What trains needs `make rl`; without it the committed results stay.
papers: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e papers
	$(BIN)/python papers/run.py $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY)) $(if $(MINUTES),--minutes $(MINUTES))

# Pages under benchmarks/ and papers/: an edit by hand is an error, a page older than its script a warning.
pages: $(STAMP)
	$(BIN)/python benchmarks/stamps.py

# What would be released, in dist: the sources, a wheel for every platform, and one for this platform and Python that brings
# compiled kernels; their metadata checked.
wheel: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check build twine
	rm -rf dist placeopt/_compiled
	$(BIN)/python -m build --outdir dist .
	$(BIN)/placeopt warm-up --any-cpu --jobs $(JOBS)
	$(BIN)/python -m build --wheel --outdir dist .
	rm -rf placeopt/_compiled
	$(BIN)/python -m twine check --strict dist/*

# A stranger's first hour: the wheel with kernels in an environment of its own, outside this folder, from an empty cache; the first
# front by the wheel without kernels as well.
first-hour: wheel
	$(BIN)/python tests/first_hour/run.py $$(ls dist/*.whl | grep -v none-any) --light dist/*-none-any.whl

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/mypy

# What trains policies: torch by its version first, so that nothing else picks one, then the rest of the extra.
rl: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[rl]'

# torch is not among the extras installed here: it is large. What needs it says so, and its tests are skipped; `make rl` adds it.
$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[jmetal,plot,dev]'
	touch $(STAMP)

clean:
	rm -rf out build dist placeopt/_compiled .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find placeopt tests -name '*.nb[ic]' -delete
