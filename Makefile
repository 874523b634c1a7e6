# What a person or a runner does with this repository. Each target sets up what it needs first.
#   demo, test       the two that the README names
#   demo-full        the demo with real speech and in real time: spoken, heard, measured (some three minutes)
#   lint             style, types, floors, documents
#   serve            the server on .data/ (ETUDE_DATA chooses another folder)
#   bench, soak      figures; the full counts of kills, sessions and rows
#   schemas, lock    write the generated files again
#   clean            remove what the others made, except .venv
.DEFAULT_GOAL := test
.PHONY: demo demo-full test lint serve bench soak schemas lock clean setup-server setup-speech setup-dev \
	setup-services

BIN := .venv/bin
WORKERS ?= 2

setup-server:
	@tools/setup server

setup-speech:
	@tools/setup speech

setup-dev:
	@tools/setup dev

setup-services:
	@tools/setup-services

demo: setup-server
	@$(BIN)/etude demo --folder demo

demo-full: setup-speech
	@$(BIN)/etude demo --folder demo --speech --real-time

test: setup-dev setup-services
	$(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m "not soak" $(TESTS)

lint: setup-dev
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q -n 0 tests/docs tests/unit/i18n

serve: export ETUDE_DATA ?= $(CURDIR)/.data
serve: setup-server
	@$(BIN)/etude init
	@$(BIN)/etude serve

bench: setup-dev setup-services
	@$(BIN)/etude bench all --json dist/bench.json

soak: setup-dev setup-services
	$(BIN)/pytest -q -n 0 -m soak $(TESTS)
	ETUDE_TEST_EXPLORE=20 $(BIN)/pytest -q -n $(WORKERS) --dist worksteal -m property $(TESTS)

schemas: setup-dev
	@$(BIN)/python tools/reference.py

lock:
	@tools/lock

clean:
	rm -rf demo dist .pytest_cache .ruff_cache .mypy_cache .import_linter_cache .hypothesis
	find src tests tools -name __pycache__ -type d -prune -exec rm -rf {} +
