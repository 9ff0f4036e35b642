# Two commands: `make gate` runs the gate on the bundled project, `make test` runs the project's own tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: gate test check clean

gate: $(VENV)/.gate  ## Gate the bundled digits model; leaves report.xml
	$(BIN)/pytest --dscore pyproject.toml fixtures --junitxml=report.xml

test: $(VENV)/.test check  ## Lint, types, and the whole test suite
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --durations=10

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(VENV)/.made:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.gate: $(VENV)/.made pyproject.toml
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@ $(VENV)/.gate

clean:
	rm -rf $(VENV) report.xml .pytest_cache .mypy_cache .ruff_cache .hypothesis
