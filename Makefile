# Two commands: `make gate` runs the gate on the bundled project, `make test` runs the project's own tests.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: gate test check suite postgres chromium clean

gate: $(VENV)/.gate  ## Gate the bundled digits model; leaves report.xml
	$(BIN)/pytest --dscore pyproject.toml fixtures --junitxml=report.xml

test: check suite  ## Lint, types, and the whole test suite

suite: $(VENV)/.test postgres chromium
	OMP_NUM_THREADS=1 $(BIN)/pytest -n 2 --durations=10

check: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

postgres:  ## The server that the ledger's tests start; installed on Debian as root, else they say that it is missing
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq postgresql >/dev/null)

chromium:  ## The browser that the HTML report is looked at with; likewise
	@command -v chromedriver >/dev/null || [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null || \
	  (apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null) || \
	  echo "chromium could not be installed: the tests that look at pages will say so and skip"

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
