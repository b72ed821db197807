# Everything is installed into .venv here and into Headrace's own cache (HEADRACE_HOME).
PYTHON ?= python3
BIN := .venv/bin
CONFORMANCE ?= ../shared/conformance
# Compiled modules are kept, whatever the machine says: tests start many processes that import them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup run demo docs check test test-kills test-faults test-soak test-cluster bench bench-quick format conformance conformance-sample clean

setup: .venv/.ready
	@$(BIN)/python -m headrace.kafka.jars
	@$(BIN)/python -m headrace.spark.runtime.durable

.venv/.ready: pyproject.toml constraints.txt
	@echo "Setting up .venv"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Headrace needs Python 3.11 or newer; '$(PYTHON)' is older. Try: make PYTHON=python3.11 …"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "pip==$$(sed -n 's/^pip==//p' constraints.txt)"
	@echo "Installing the pinned dependencies (PySpark is 400 MB; about a minute the first time)"
	@$(BIN)/python -m pip install --quiet --progress-bar on --disable-pip-version-check \
	  --constraint constraints.txt --editable '.[server]' --group dev
	@touch $@

run: setup
	@$(BIN)/headrace demo --keep

demo: setup
	@$(BIN)/headrace demo

format: .venv/.ready
	@$(BIN)/ruff format src tests
	@$(BIN)/ruff check --fix src tests

# The reference pages, from the declarations.
docs: .venv/.ready
	@for page in functions settings properties; do \
	  $(BIN)/headrace reference $$page > docs/$$page.md; \
	done

# Format, lint, types, layers, unused code, and the tests that need no JVM, in three processes: some of them
# wait more than they work. Over a minute.
check: .venv/.ready
	@$(BIN)/ruff format --check --quiet --no-cache src tests
	@$(BIN)/ruff check --quiet --no-cache src tests
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/vulture
	@$(BIN)/pytest -q -m "not heavy" -n 3 --dist worksteal

# Servers killed at random. `make test` kills a few; `make test-kills` many, for many minutes (the
# variables KILLS and RECORDS of the environment say how many, and among how many records).
KILL_TESTS := tests/e2e/test_exactly_once.py tests/e2e/test_state_recovery.py

# Tests on a real broker and a real Spark. One process for each part: a process has one JVM, and
# the parts want theirs set up differently. `tests/test_parts.py` says that no test is in none of
# them, or in two. Some are content with one server for all of them.
TOGETHER := tests/engine $(patsubst %,tests/e2e/test_%.py,headers pseudocolumns processing_log \
  single_field_examples single_field_keys single_fields_matrix \
  corrupted_records entry_points answers answers_clients optimistic_decoding windowed_joins two_ways \
  coalesced_tables bad_requests migrations replaced_query replayed_batch state_refused \
  changed_topics single_field_choices power_cuts thread_deaths consumer_groups \
  continuation)
# These share another, which has nothing else to do: they look at what it holds and how it answers.
LOOKED_AT := $(patsubst %,tests/e2e/test_%.py,terminal_session answers_soak fairness \
  answers_under_load page)
# These look at how long it takes until all is as before.
TIMED := $(patsubst %,tests/e2e/test_%.py,component_deaths several_servers)
# No part besides those looks at times: two of the others run at once.
SINGLE := $(filter-out $(TOGETHER) $(LOOKED_AT) $(TIMED) $(KILL_TESTS),$(wildcard tests/e2e/test_*.py)) \
  $(addprefix tests/,formats functions spark testing)
BESIDE := $(addprefix part/,together kills sparkless $(SINGLE)) conformance-sample
ALONE := $(addprefix part/,looked_at $(TIMED) faults)
# What fails runs once more, with the same seed (SEED=… chooses it), and is told as FLAKY if it then
# passes; in CI it has to be listed in tests/flaky.toml. Java's quick compiler alone: what a test does
# is over before the other one's code would pay, and that one would take half of the machine.
HEAVY := SPARK_SUBMIT_OPTS=-XX:TieredStopAtLevel=1 $(BIN)/python tests/flaky.py

test: setup check
	@$(HEAVY) forget
	@$(MAKE) --no-print-directory --jobs 2 $(BESIDE)
	@$(MAKE) --no-print-directory --jobs 1 $(ALONE)
	@$(HEAVY) verdict

part/together:
	@$(HEAVY) run $(TOGETHER)

part/looked_at:
	@$(HEAVY) run $(LOOKED_AT)

part/kills:
	@$(HEAVY) run -k brief $(KILL_TESTS)

part/faults:
	@$(HEAVY) run -k brief tests/faults

# These have no Spark at all.
part/sparkless:
	@$(HEAVY) run $(addprefix tests/,cli datagen plan kafka registry importing)

part/%:
	@$(HEAVY) run $*

test-kills: setup
	@$(BIN)/pytest -m heavy -k "not brief" $(KILL_TESTS)

# Everything that can happen to a service, under load: FAULTS=200 SEED=… GUARANTEE=at_least_once or
# exactly_once_v2 (without it both), KINDS=server,jvm,… QUERIES=plain,…
test-faults: setup
	@$(BIN)/pytest -q -s -m heavy -k "not brief" tests/faults

# Ordinary use for SOAK_MINUTES (40), which prints every minute what the server holds, and clients
# that do not read (STALLED_CLIENTS, PULLED_ROWS).
test-soak: setup
	@$(BIN)/pytest -s -m heavy tests/soak

# A standalone Spark cluster on this machine, one of whose workers is killed: some minutes.
test-cluster: setup
	@$(BIN)/pytest -m heavy tests/cluster

# ksqlDB's own cases, where they lie beside the project: all that expect an error, and a sample of
# the others on a real broker. gaps.toml says which fail, and what settings they assume.
CASES := $(BIN)/headrace test --gaps conformance/gaps.toml

conformance-sample: .venv/.ready
	@if test -d $(CONFORMANCE); then \
	  $(CASES) --select errors $(CONFORMANCE)/query $(CONFORMANCE)/sql && \
	  $(CASES) --select queries --sample 20 \
	    $(CONFORMANCE)/query $(CONFORMANCE)/sql $(CONFORMANCE)/rest; \
	else echo "$(CONFORMANCE) is not there: conformance cases are skipped"; fi

# All of them: those with records evaluated without a broker, those of the server on a real one.
conformance: setup
	@$(CASES) --direct $(CONFORMANCE)/query $(CONFORMANCE)/sql
	@$(CASES) $(CONFORMANCE)/rest

# What users compare, side by side, on this machine: about an hour and a half. The page that docs show.
bench: setup
	@$(BIN)/headrace bench --with-flink --out docs

# The main ratios, once, on less data: under five minutes.
bench-quick: setup
	@$(BIN)/headrace bench --quick

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis
