# One entry for people and for machines. `make test` works from a fresh clone: it makes the environment first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Constraints go to every call of pip, and to the environments in which pip builds: nothing here resolves a version of
# its own choice. pip would compile every module on one core, most of them for nothing: `env` does so on all cores.
INSTALL := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt \
	$(BIN)/python -m pip -qq --disable-pip-version-check install --no-compile
PYTEST_ARGS ?=
COUNT ?= 10000
KILLS ?= 200
EXAMPLES ?= 5000
MINUTES ?= 30
CLIENTS ?= 200
SECONDS ?= 20
ROWS ?= 2000
SEED ?= 0
# The tests of the engine in C, without those of the GPU's kernels and of the engine as a torch function.
ENGINE_TESTS := tests/engine --ignore tests/engine/cuda --ignore tests/engine/test_differentiable.py
CPUS ?= $$($(BIN)/python -c "from opgrow.engine.library import library as l; print(*(i for i, known in l().isas().items() if known))")

.DEFAULT_GOAL := help
.PHONY: help env engine wheels install-check aarch64 sanitize chips demo test fuzz properties torture attack extremes load cpus audit figures docs lint format clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

env: $(VENV)/.installed  ## make .venv with the package and its development tools

# The package alone, with what it needs to run: `make demo` waits for nothing else. An editable installation has a list of
# modules, so it is made again where a folder has changed.
$(VENV)/.package: pyproject.toml constraints.txt packaging/backend.py $(wildcard src/opgrow/engine/c/*) \
		$(shell find src/opgrow -type d -not -name __pycache__)
	@echo "Installing opgrow in $(VENV) (the first time takes a minute) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(INSTALL) --editable .
	@touch $@

$(VENV)/.installed: $(VENV)/.package
	@echo "Installing the development tools in $(VENV) (the first time takes a few minutes) ..."
	@$(INSTALL) --editable ".[dev]"
	@$(BIN)/python -m compileall -qq -j 0 $(VENV)/lib || true  # some packages come with files for other Pythons
	@touch $@

engine:  ## compile the engine alone, into build/engine (OPGROW_ENGINE=build/engine/libopgrow_engine.so uses it)
	@cmake -S src/opgrow/engine/c -B build/engine > /dev/null
	@cmake --build build/engine --parallel

wheels: env  ## build wheels for Linux, macOS and Windows into dist/, with zig as the cross compiler
	@$(INSTALL) build lief scikit-build-core wheel ziglang
	@$(BIN)/python packaging/wheels.py dist

install-check: env  ## sdist, wheel, editable and without a compiler: install each in a new environment, and fit
	@$(INSTALL) build
	@$(BIN)/python packaging/check_install.py

aarch64: env  ## fit every estimator on aarch64, under qemu, and compare the networks with those of this machine
	@$(INSTALL) build lief scikit-build-core wheel ziglang
	@$(BIN)/python tests/integration/aarch64.py

sanitize: env  ## the engine's tests and 10,000 random calls with AddressSanitizer and UBSan (COUNT=..., SEED=...)
	@cmake -S src/opgrow/engine/c -B build/sanitize -DOPGROW_SANITIZE=ON > /dev/null
	@cmake --build build/sanitize --parallel
	LD_PRELOAD="$$($(CC) -print-file-name=libasan.so) $$($(CC) -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
		OPGROW_ENGINE=build/sanitize/libopgrow_engine.so OPGROW_FUZZ=$(COUNT) OPGROW_FUZZ_SEED=$(SEED) \
		$(BIN)/python -m pytest -q $(ENGINE_TESTS)

chips: env  ## exported C on an ATmega328P, Cortex-M0, M3, M4 and RISC-V in simulators: sizes, stack, cycles (BOARDS=..., TABLES=...)
	@$(BIN)/python -m tests.chips.chips $(if $(BOARDS),--boards $(BOARDS)) $(if $(TABLES),--tables $(TABLES))

demo: $(VENV)/.package  ## grow a small network on data that comes along, and show it
	@$(BIN)/opgrow demo

test: lint  ## lint, types, tests and the examples in the docstrings, on all cores
	$(BIN)/python -m pytest --numprocesses auto --dist worksteal --doctest-modules src tests $(PYTEST_ARGS)

fuzz: env  ## read 10,000 mutated model files (COUNT=..., SEED=...)
	OPGROW_FUZZ=$(COUNT) OPGROW_FUZZ_SEED=$(SEED) $(BIN)/python -m pytest -rP --numprocesses auto tests/fuzz

properties: env  ## try 5,000 generated inputs on estimators and commands (EXAMPLES=..., SEED=...)
	OPGROW_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest --hypothesis-seed=$(SEED) --hypothesis-show-statistics \
		--numprocesses auto tests/reliability/test_properties.py tests/reliability/test_command_properties.py

torture: env  ## kill 200 fits at random moments, resume them, compare the networks (KILLS=..., SEED=...)
	OPGROW_KILLS=$(KILLS) OPGROW_KILLS_SEED=$(SEED) $(BIN)/python -m pytest -rP tests/reliability/test_checkpoints.py -k killed

attack: env  ## damage and forge models, checkpoints and tables, and try exports on extreme rows (MINUTES=30, SEED=...)
	$(BIN)/python tests/attack/attack.py --minutes $(MINUTES) --seed $(SEED)

extremes: env  ## every estimator as C in every variant, with ASan and UBSan, on extreme rows (ROWS=2000)
	$(BIN)/python -m tests.attack.extreme_rows --rows $(ROWS)

load: env  ## opgrow serve under 200 clients, honest and hostile: latencies, and what is lost or leaked (CLIENTS=, SECONDS=)
	$(BIN)/python tests/attack/serving.py --clients $(CLIENTS) --seconds $(SECONDS)

# v2 has no fused multiply-add: what emulates it is right and slow, so the engine's own tests have to do there.
cpus: env  ## the numerical tests with every instruction set that this processor knows, and by another compiler (CPUS="v2 v3")
	@for isa in $(CPUS); do \
		which="-m cpu"; if [ $$isa = v2 ]; then which="$(ENGINE_TESTS)"; fi; \
		echo "$$isa:"; OPGROW_ISA=$$isa $(BIN)/python -m pytest -q $$which $(PYTEST_ARGS) || exit 1; done
	@$(INSTALL) ziglang
	$(BIN)/python -m pytest -q tests/integration/test_same_network_everywhere.py $(PYTEST_ARGS)

audit: env  ## look the pinned dependencies up among known vulnerabilities (needs the network)
	@$(BIN)/python .ci/audit.py constraints.txt

figures: env  ## bring the tables, numbers and pictures of README and docs/ up to date with results/
	@PYTHONPATH=docs $(BIN)/python -m figures

docs: env  ## build the documentation into site/ (warnings are errors)
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env docs site
	@echo "Open site/index.html"

lint: env  ## ruff (rules and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: env  ## let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove caches and build leftovers (.venv stays)
	rm -rf build dist site .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
