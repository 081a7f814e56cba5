PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= experiments/demo

.PHONY: demo demo-headless test check bench bench-ledger clean

# torch comes first, by its exact version, so that the node extra takes it as it is
$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/python -m pip install -q torch==2.13.0
	$(BIN)/python -m pip install -q -e '.[node,dev]'
	touch $@

# on a terminal the console opens, and to leave it (130) is no failure; without one the lab runs line by line
demo: $(VENV)/.installed
	@if [ -t 1 ]; then $(BIN)/lab demo --out $(OUT) || { code=$$?; [ $$code -eq 130 ] || exit $$code; }; \
	else $(BIN)/lab demo --headless --out $(OUT); fi

demo-headless: $(VENV)/.installed
	$(BIN)/lab demo --headless --out $(OUT)

test: $(VENV)/.installed
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy console
	$(BIN)/lint-imports

bench: $(VENV)/.installed
	for file in tests/bench/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

bench-ledger: $(VENV)/.installed
	$(BIN)/python tests/bench/bench_ledger.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
