# One command each. Everything is installed into .venv and target/, nothing else is touched.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
OLDEST := $(VENV)-oldest
PEERS := $(VENV)-bench
TORCH := $(VENV)-torch
WHEELS := $(VENV)-wheels
HOST = $(shell rustc -vV | sed -n 's/^host: //p')
# How many processes run the Python tests: many tests wait more than they compute.
JOBS ?= 6
PYTEST := -m pytest --numprocesses $(JOBS) --dist loadgroup
# What Gymnasium and NumPy have a part in: spaces, arrays, infos, errors, wrappers, trajectories.
WHAT_DIFFERS := -m "not thorough" tests/contract tests/python_envs tests/gymnasium_tools tests/adapters \
	tests/managers tests/parity tests/matrix/test_matrix.py tests/faults/test_env_faults.py tests/faults/test_worker_errors.py
SOURCES := $(shell find crates python -name '*.rs' -o -name '*.py' -o -name '*.pyi' -o -name 'Cargo.toml') \
	Cargo.toml Cargo.lock pyproject.toml tools/corral_build.py

.DEFAULT_GOAL := help
.PHONY: help build demo examples examples-torch torch test test-rust test-python test-border test-trainers test-all test-oldest test-threads test-loom test-tsan test-asan wheels test-wheel test-wheel-oldest test-sdist fuzz bench bench-peers bench-trainers bench-rust bench-instructions lint format headers docs site env-scores clean

help: ## Show this list.
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

build: $(STAMP) ## Build the package into .venv, optimised.

$(STAMP): $(SOURCES)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --group dev
	$(BIN)/python tools/corral_build.py
	PIP_QUIET=1 VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --quiet --release
	touch $(STAMP)

demo: build ## Train PPO on CartPole, evaluate, draw: demo/*.png, *.gif, *.csv.
	$(BIN)/python demo/train.py

examples: build ## Run the examples: PPO in NumPy on three envs, a tree search, and those in PyTorch.
	$(BIN)/python examples/ppo.py
	$(BIN)/python examples/tree_search.py
	$(MAKE) examples-torch

examples-torch: build torch ## Run the examples in PyTorch: PPO with action masks, Stable-Baselines3.
	PYTHONPATH=python $(TORCH)/bin/python examples/masked_ppo.py
	PYTHONPATH=python $(TORCH)/bin/python examples/sb3.py

torch: ## Install PyTorch and Stable-Baselines3 into .venv-torch: gigabytes.
	test -x $(TORCH)/bin/python || $(PYTHON) -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(TORCH)/bin/python -m pip install --quiet --no-cache-dir --group torch

test: test-rust test-python ## Run the tests.

test-all: test-rust test-border test-threads build ## Run every case of every test, with the oldest Gymnasium and NumPy too.
	CORRAL_SINES_POINTS=1000000000 cargo test --locked --release -p envcore --test sines
	$(BIN)/python $(PYTEST)
	$(MAKE) test-oldest WHAT_DIFFERS=

test-trainers: build torch ## Run the programs of docs/trainers by the trainers themselves, and Ray's tests: gigabytes.
	$(BIN)/python $(PYTEST) tests/trainers tests/ray tests/contract/test_torch.py

test-border: ## Run Border's sampler and evaluator over our envs.
	cd examples/border && cargo test --locked --target-dir $(abspath target/border)

test-threads: test-loom test-tsan test-asan ## Check what is unsafe: every interleaving of the hand-off to threads, data races, memory.

test-loom: ## Check the hand-off to threads under loom.
	RUSTFLAGS="--cfg loom" cargo test --locked --release --target-dir target/loom -p envcore --lib models

test-tsan: ## Run the runners' tests under ThreadSanitizer.
	RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer" \
	TSAN_OPTIONS="suppressions=$(abspath tests/sanitizers/tsan.txt)" \
	cargo test --locked --target $(HOST) --target-dir target/tsan -p envs \
	--test all -- --test-threads=1 --skip as_many_slots threads:: on_failure:: states::

ASAN := RUSTC_BOOTSTRAP=1 RUSTFLAGS="-Zsanitizer=address" \
	ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1:detect_stack_use_after_return=1" \
	cargo test --locked --target $(HOST) --target-dir target/asan

test-asan: ## Run the tests of what is unsafe under AddressSanitizer.
	$(ASAN) -p envcore --features load --lib --test spaces
	$(ASAN) -p envs --test all -- buffers:: actions:: plugin:: processes::

fuzz: ## Feed the parsers of netenv, in both roles, and of OpenEnv's actions with a million made-up messages: CASES=1000000.
	PROPTEST_CASES=$(or $(CASES),1000000) cargo test --locked --release -p envcore --features openenv --lib net::

test-rust: ## Run the Rust tests, examples in the docs included.
	cargo test --workspace --exclude envpy --exclude benches --locked

test-python: build ## Run the Python tests.
	$(BIN)/python $(PYTEST) -m "not thorough"

test-oldest: build ## Run what can differ with the oldest Gymnasium and NumPy supported.
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(OLDEST)/bin/python -m pip install --quiet "gymnasium==1.2.0" "numpy==1.26.*" --group test
	PYTHONPATH=$(abspath python) $(OLDEST)/bin/python $(PYTEST) -p no:cacheprovider $(WHAT_DIFFERS)

wheels: ## Build the wheel and the source distribution into target/wheels, and audit the wheel.
	test -x $(WHEELS)/bin/python || $(PYTHON) -m venv $(WHEELS)
	$(WHEELS)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(WHEELS)/bin/python -m pip install --quiet --group wheels
	$(WHEELS)/bin/python tools/wheels.py build $(if $(INTERPRETER),--interpreter $(INTERPRETER))

test-wheel: ## Run the contract tests on the wheel, in a new venv without Rust: PYTHON=python3.12.
	$(PYTHON) tools/wheels.py test --python $(PYTHON)

test-wheel-oldest: ## The same, with the oldest Gymnasium and NumPy supported.
	$(PYTHON) tools/wheels.py test --python $(PYTHON) --oldest

test-sdist: ## Build the source distribution in a new venv, and run the contract tests there.
	$(PYTHON) tools/wheels.py test --python $(PYTHON) --sdist

# NumPy's threads would wait for each other spinning, and Ray's actors would give way to all others.
bench: export OPENBLAS_NUM_THREADS ?= 1
bench: export RAY_worker_niceness ?= 0
bench: build ## Measure beside the peers: make bench NAME=cartpole QUICK=1.
	PYTHONPATH=python $(if $(wildcard $(PEERS)/bin/python),$(PEERS),$(VENV))/bin/python \
	-m corral bench $(NAME) $(if $(QUICK),--quick) --benches benches

bench-peers: ## Install the peers into .venv-bench.
	test -x $(PEERS)/bin/python || $(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --upgrade "pip>=25.1"
	$(PEERS)/bin/python -m pip install --quiet --group bench
	$(PEERS)/bin/python -m pip install --quiet --no-deps stable-baselines3 DI-engine
	-$(PEERS)/bin/python benches/install_pufferlib.py

TRAINERS ?= tianshou rl_games torchrl skrl rllib
bench-trainers: build torch ## Measure trainers over our envs and over the vec envs of their users: gigabytes.
	$(TORCH)/bin/python -m pip install --quiet "typer>=0.15" "rich>=13" "matplotlib>=3.8" "envpool>=1.2.5" "ray>=2.40"
	PYTHONPATH=python $(TORCH)/bin/python -m corral bench trainers-sb3 trainers-cleanrl trainers-lerobot trainers-trl --benches benches
	set -e; for trainer in $(TRAINERS); do \
	python=$$($(BIN)/python -c "from tests.abi import peers; print(peers.trainer_python('$$trainer'))"); \
	PYTHONPATH=python $$python -m corral bench trainers-$$trainer --benches benches; done

bench-rust: ## Measure the core's inner loops by criterion.
	cargo bench --locked -p benches --bench inner_loops

bench-instructions: ## Count the core's instructions (takes Valgrind).
	command -v valgrind >/dev/null || { echo "install valgrind first" >&2; exit 1; }
	test -x target/tools/bin/gungraun-runner || \
	cargo install --quiet --locked gungraun-runner --version 0.20.0 --root target/tools
	PATH="$(abspath target/tools/bin):$$PATH" cargo bench --locked -p benches --bench instructions

lint: build ## Check format, lints, types and stubs.
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --locked -p envcore --no-default-features -- -D warnings
	# The lock of the crate outside the workspace must follow what the workspace asks for.
	cargo update --quiet --workspace --locked --manifest-path examples/border/Cargo.toml
	RUSTFLAGS="-D warnings --cfg portable" cargo check --locked --target-dir target/portable -p envcore -p envlib -p envpy
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked --quiet
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m mypy.stubtest corral._native
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml

format: build ## Format everything.
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

headers: ## Make corral.h from the plugin's declarations.
	CORRAL_WRITE_HEADERS=1 cargo test --locked -p envcore --test header

docs: build ## Build the site into target/site, docs/faults.md, and docs/envs with what `corral info` tells.
	cargo doc --workspace --no-deps
	$(BIN)/python docs/faults.py > docs/faults.md.new
	mv docs/faults.md.new docs/faults.md
	PYTHONPATH=docs $(BIN)/python -m env_pages
	$(MAKE) site

site: build ## Build the site alone, over the Rust docs that `make docs` left.
	$(BIN)/python -m sphinx --fresh-env --quiet --fail-on-warning --keep-going -c docs . target/site
	@echo "open target/site/index.html"

env-scores: build ## Score and film envs for docs/envs: IDS="CartPole-v1", or those that have no score.
	PYTHONPATH=docs $(BIN)/python -m env_pages --measure $(IDS)

clean: ## Remove what was built.
	rm -rf target $(VENV) $(OLDEST) $(PEERS) $(TORCH) $(WHEELS) .peers python/corral/lib python/corral/_sources
