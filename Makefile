# Every target makes the environment it needs; nothing but Python >= 3.11 with venv and pip is assumed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TASK   ?= A
PEERS  ?= some
SEED   ?= 1

.PHONY: help demo test check types docs audit format api pictures bench accounting-grid bench-large attack clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "curador needs Python 3.11 or later; set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing curador and its tools into $(VENV) (about a minute, once) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(READY) ## what curador does today, in a terminal
	@$(BIN)/curador demo

test: $(READY) ## every test (minutes)
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(READY) ## format, lint, types, fast tests (under a minute)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow" tests/unit tests/docs tests/compat --ignore=tests/docs/test_textbook.py

types: $(READY) ## strict types by the slower checker (a minute)
	$(BIN)/pyright

docs: $(READY) ## the documents as a site in build/site, and a look at what was built (a minute)
	$(BIN)/python -m sphinx -q -E -a -W --keep-going -b html -c docs -d build/site-trees . build/site
	@echo "open build/site/index.html"
	CURADOR_SITE=build/site $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/docs/test_site.py tests/docs/test_site_pages.py

audit: $(READY) ## refute every mechanism's claim with 1,000,000 releases a world, or fail to (a minute)
	$(BIN)/curador audit --samples 1000000

format: $(READY) ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

api: $(READY) ## rewrite the checked-in lists of public names, signatures and commands
	$(BIN)/python tests/docs/public_names.py names > docs/reference/public-names.txt
	$(BIN)/python tests/docs/public_names.py reference > docs/reference/README.md
	$(BIN)/python tests/docs/command_names.py > docs/reference/command-line.md

pictures: $(READY) ## draw the figures of docs again
	$(BIN)/python tests/docs/pictures.py

bench: $(READY) ## ratios against the peers: make bench TASK=A [PEERS=all]
	$(BIN)/python bench/run.py --task $(TASK) --peers $(PEERS)

attack: $(READY) ## try to read one person's attribute by the clock, with and without the limit on work (quiet machine, minutes)
	$(BIN)/python bench/attack/read_by_time.py

accounting-grid: $(READY) ## subsampled Gaussians on 630 settings against 34-digit values, a tenth of them made anew (an hour)
	$(BIN)/python tests/oracle/subsampled_grid.py 0.1 $(SEED)
	$(BIN)/python tests/oracle/run_subsampled_grid.py

bench-large: $(READY) ## preparing and asking at 1, 10 and 100 million rows (half an hour)
	PYTHONPATH=bench $(BIN)/python bench/query/large.py

clean: ## remove the environments this file made
	rm -rf $(VENV) .bench
