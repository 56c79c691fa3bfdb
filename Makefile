# make demo    train a GPT on eight virtual devices under a plan the planner found
# make demo-pipeline  the same GPT in two stages on four devices each
# make demo-ray       the same in two actors of a local Ray
# make test    everything: style, lit, pytest
# make docs    the documentation as a site, in build/site
# make wheel   wheels of planner and runtime in dist/; make check-wheels runs them in environments that have nothing else
# make check-accelerators  what XLA's compilers for GPU and TPU make of the suite's models; no device is needed
# Each sets the machine up first (system packages, virtual environment, build); a second run finds all of it done.

VENV      := .venv
BUILD     := build
BIN       := $(CURDIR)/$(VENV)/bin
JOBS      ?= $(shell nproc)
# A test process makes eight virtual devices and takes up to 3 GiB. One more than there are cores: tests of several
# processes wait for them.
TEST_JOBS ?= $(shell n=$$(nproc); echo $$((n < 4 ? n + 1 : 4)))
MLIR_DIR  ?=
export MLIR_DIR

# Debian's MLIR unless MLIR_DIR says otherwise; its tools (FileCheck, clang) lie beside it.
MLIR_CMAKE := $(or $(MLIR_DIR),/usr/lib/llvm-22/lib/cmake/mlir)
LLVM_BIN   := $(abspath $(MLIR_CMAKE)/../../../bin)
RUN        := PATH="$(BIN):$(LLVM_BIN):$$PATH"

# XLA's CPU client aborts when launches of many virtual devices outrun its thread pool; four threads a device suffice.
DEVICES = PJRT_NPROC=32 XLA_FLAGS="--xla_force_host_platform_device_count=8 $(XLA_FLAGS)" JAX_PLATFORMS=cpu

SYSTEM_STAMP := .setup/system
TESTS_STAMP  := .setup/tests
VENV_STAMP   := $(VENV)/.packages
CMAKE_STAMP  := $(BUILD)/build.ninja

.PHONY: all demo demo-pipeline demo-ray test test-quick test-matrix style lit pytest optimised bench format build setup wheel check-wheels clean \
  sanitize fuzz random-operators coverage pass-docs command-docs docs docs-pictures notebooks check-upstream check-accelerators

all: build

setup: $(SYSTEM_STAMP) $(VENV_STAMP)

$(SYSTEM_STAMP): requirements/apt.txt scripts/install_system_packages.sh
	@scripts/install_system_packages.sh $<
	@mkdir -p $(@D) && touch $@

$(TESTS_STAMP): requirements/apt-tests.txt scripts/install_system_packages.sh | $(SYSTEM_STAMP)
	@scripts/install_system_packages.sh $<
	@mkdir -p $(@D) && touch $@

$(VENV_STAMP): $(wildcard requirements/*.txt) scripts/make_venv.sh | $(SYSTEM_STAMP)
	@echo "installing Python packages into $(VENV)"
	@scripts/make_venv.sh $(VENV)
	@touch $@

$(CMAKE_STAMP): | $(SYSTEM_STAMP) $(VENV_STAMP)
	$(RUN) cmake -S . -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release -DMLIR_DIR=$(MLIR_CMAKE) \
	  -DCMAKE_C_COMPILER=$(LLVM_BIN)/clang -DCMAKE_CXX_COMPILER=$(LLVM_BIN)/clang++ \
	  -DPython_EXECUTABLE=$(BIN)/python -DPython3_EXECUTABLE=$(BIN)/python -DSTABLEHLO_ALPA_INPLACE=ON

build: $(SYSTEM_STAMP) $(VENV_STAMP) $(CMAKE_STAMP)
	@$(RUN) ninja -C $(BUILD) -j $(JOBS)

demo: build
	@$(DEVICES) $(BIN)/python examples/gpt_char.py

demo-pipeline: build
	@$(DEVICES) $(BIN)/python examples/gpt_pipeline.py

demo-ray: build
	@$(DEVICES) $(BIN)/python examples/gpt_pipeline.py --ray

test: style lit pytest optimised

# What XLA has compiled for the tests is kept: a second run compiles what has changed. `make test COMPILED=` keeps none.
COMPILED ?= $(CURDIR)/$(BUILD)/compiled
KEPT      = $(if $(COMPILED),JAX_COMPILATION_CACHE_DIR=$(COMPILED))

# The tests start some hundred processes, and each compiles the package again where no bytecode is kept.
BYTECODE  = PYTHONDONTWRITEBYTECODE=
PYTEST    = $(DEVICES) $(KEPT) $(BYTECODE) $(BIN)/python -m pytest -q -n $(TEST_JOBS) --dist worksteal

# Thousands of small programs are compiled, and each runs a few times; to put one together of parts that several threads
# compile takes a quarter more. What is optimised is for `make optimised`. Memory is glibc's: where a choice takes a
# number of 4 bytes, XLA:CPU of jaxlib 0.10.2 reads 16, behind the end of an array, and under jemalloc at times of what
# is mapped.
test-quick pytest random-operators: XLA_FLAGS += --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false \
  --xla_cpu_parallel_codegen_split_count=1

# Where each operator stands in Python takes an eighth of the time to write down; `make optimised` does.
test-quick pytest random-operators: export JAX_TRACEBACK_IN_LOCATIONS_LIMIT = 0

test-quick: build style lit $(TESTS_STAMP)
	@$(PYTEST) -m "not slow and not matrix and not optimised" --cases one tests/py

style: $(VENV_STAMP)
	@$(RUN) pre-commit run --all-files --show-diff-on-failure

lit: build
	@$(RUN) lit -s tests/lit --param build=$(BUILD) --param llvm=$(LLVM_BIN)
	@$(RUN) lit -s tests/lit/passes --param build=$(BUILD) --param llvm=$(LLVM_BIN) --param tool=mlir-opt

pytest: build lit style $(TESTS_STAMP)
	@$(PYTEST) -m "not matrix and not optimised" --cases some tests/py

# Programs as users have them: what XLA makes of them by default.
optimised: build pytest
	@$(PYTEST) -m optimised tests/py/test_optimised.py

test-matrix: build $(TESTS_STAMP)
	@$(PYTEST) -m "not optimised" --cases others tests/py

# Random programs of every kind of operator under random plans, against jax.jit, of these seeds.
SEEDS ?= 10000 14000
random-operators: build
	@$(DEVICES) $(BIN)/python tests/py/test_random_operators.py $(SEEDS)

# BENCH_FLAGS=--quick takes smaller sizes.
bench: build
	@$(DEVICES) $(BIN)/python benchmarks/all_bars.py --page docs/benchmarks.md $(BENCH_FLAGS)

# The compilers are large and belong to devices that are not here: they lie in a folder of their own. What they made is
# kept beside them, so that a second run is quick. CHECK_FLAGS="--models gpt --targets h100" looks at a part.
ACCELERATORS      := $(BUILD)/accelerators
ACCELERATOR_STAMP := $(ACCELERATORS)/.packages

check-accelerators: build $(ACCELERATOR_STAMP)
	@$(DEVICES) PYTHONPATH=$(CURDIR)/$(ACCELERATORS)/packages $(BIN)/python benchmarks/accelerators.py $(CHECK_FLAGS)

$(ACCELERATOR_STAMP): requirements/accelerators.txt requirements/pins.txt | $(VENV_STAMP)
	@echo "installing XLA's compilers for GPU and TPU into $(ACCELERATORS)"
	@rm -rf $(ACCELERATORS)/packages
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --target $(ACCELERATORS)/packages -r $<
	@touch $@

# Address and undefined-behaviour sanitizers over our code, on the lit suite. MLIR is not instrumented: containers that
# cross the border, and LLVM's own poisoning, would be reported wrongly.
ASAN := ASAN_OPTIONS=detect_container_overflow=0:allow_user_poisoning=0:detect_leaks=0
LIT_TOOLS := stablehlo-alpa-opt alpa-capi-test

sanitize: $(BUILD)-sanitize/build.ninja
	@$(RUN) ninja -C $(BUILD)-sanitize -j $(JOBS) $(LIT_TOOLS)
	@$(RUN) $(ASAN) lit -s tests/lit --param build=$(BUILD)-sanitize --param llvm=$(LLVM_BIN) --filter-out plugin

# libFuzzer on parser and passes for FUZZ_S seconds, beginning with the corpus that is kept.
FUZZ_S ?= 600
fuzz: $(BUILD)-fuzz/build.ninja
	@$(RUN) ninja -C $(BUILD)-fuzz -j $(JOBS) alpa-fuzz
	@mkdir -p $(BUILD)-fuzz/corpus
	@$(RUN) $(ASAN) $(BUILD)-fuzz/bin/alpa-fuzz -max_total_time=$(FUZZ_S) -timeout=25 -rss_limit_mb=6000 -max_len=20000 \
	  -dict=tests/fuzz/dictionary.txt -artifact_prefix=$(BUILD)-fuzz/ $(BUILD)-fuzz/corpus tests/fuzz/corpus

# Lines of dialects, cpp and passes that the lit suite runs: at least 90 % of each.
coverage: $(BUILD)-coverage/build.ninja
	@$(RUN) ninja -C $(BUILD)-coverage -j $(JOBS) $(LIT_TOOLS)
	@rm -rf $(BUILD)-coverage/profiles && mkdir -p $(BUILD)-coverage/profiles
	@$(RUN) LLVM_PROFILE_FILE=$(CURDIR)/$(BUILD)-coverage/profiles/%8m.profraw \
	  lit -s tests/lit --param build=$(BUILD)-coverage --param llvm=$(LLVM_BIN) --filter-out plugin
	@$(RUN) scripts/print_coverage.sh $(BUILD)-coverage

$(BUILD)-%/build.ninja: | $(SYSTEM_STAMP) $(VENV_STAMP)
	@scripts/install_system_packages.sh requirements/apt-checks.txt
	@$(RUN) cmake -S . -B $(BUILD)-$* -G Ninja -DCMAKE_BUILD_TYPE=Release -DMLIR_DIR=$(MLIR_CMAKE) \
	  -DCMAKE_C_COMPILER=$(LLVM_BIN)/clang -DCMAKE_CXX_COMPILER=$(LLVM_BIN)/clang++ -DSTABLEHLO_ALPA_INSTRUMENT=$*

# Which of upstream's test programs the bundled StableHLO accepts and refuses as upstream does; and what random plans of
# them are lowered to: jaxlib has to read it and to compute the same. STABLEHLO is a checkout of openxla/stablehlo,
# UPSTREAM_OPT its stablehlo-opt if it is built.
STABLEHLO ?=
UPSTREAM_OPT ?=
check-upstream: build
	$(if $(STABLEHLO),,$(error STABLEHLO must name a checkout of openxla/stablehlo))
	@$(RUN) python scripts/check_upstream.py $(STABLEHLO) --tool $(BUILD)/bin/stablehlo-alpa-opt --list \
	  $(if $(UPSTREAM_OPT),--reference $(UPSTREAM_OPT))
	@$(RUN) python scripts/check_upstream_plans.py $(STABLEHLO)

pass-docs: $(SYSTEM_STAMP)
	@scripts/make_pass_docs.sh $(LLVM_BIN) > docs/passes.md

# What each command says of itself.
command-docs: build
	@$(BIN)/python scripts/make_command_docs.py > docs/command_line_reference.md

# Links, anchors and the navigation are checked; nothing is fetched.
docs: $(VENV_STAMP)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict -d $(BUILD)/site
	@echo "$(BUILD)/site/index.html"

# Run, with what their cells print and show.
notebooks: build
	@$(BIN)/python scripts/make_notebooks.py

# Pages of plans as the browser of the tests shows them.
docs-pictures: build $(TESTS_STAMP)
	@$(DEVICES) ALPA_PICTURES=$(CURDIR)/docs/images $(BIN)/python -m pytest -q -k pictures tests/py/test_page_browser.py

format: $(VENV_STAMP)
	@$(BIN)/ruff check -q --fix . || true
	@$(BIN)/ruff format -q .
	@git ls-files '*.c' '*.cpp' '*.h' | xargs -r $(LLVM_BIN)/clang-format -i

# One wheel for each of PYTHONS that is here. The core is compiled once, by `build`; only python/core.cpp knows Python.
PYTHONS ?= python3.11 python3.12 python3.13

wheel: build
	@$(RUN) CC=$(LLVM_BIN)/clang CXX=$(LLVM_BIN)/clang++ MLIR_DIR=$(MLIR_CMAKE) PYTHONS="$(PYTHONS)" \
	  scripts/make_wheels.sh $(BUILD) dist

check-wheels: wheel
	@PYTHONS="$(PYTHONS)" scripts/check_wheels.sh $(BUILD) dist

clean:
	rm -rf $(BUILD) $(BUILD)-* dist .setup .mypy_cache .ruff_cache .pytest_cache .hypothesis stablehlo_alpa/_core*.so
