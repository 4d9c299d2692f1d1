# make demo   the main job: compile a sampling filter, run the generated kernel on the twin, compare
# make test   the tests; make test-long those that take long
# make bench  what fusion buys, as modelled
# make test-npu   what needs CANN and an NPU
# Both make a virtual environment first. PYTHON=python3.13 takes another interpreter (3.11 to 3.13).

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do $$p -c '' 2>/dev/null && echo $$p && break; done)

# An interpreter of that name may be a pyenv shim that is switched off here: take the version pyenv has of it.
INTERPRETER := $(shell $(PYTHON) -c 'import sys; print(sys.executable)' 2>/dev/null || \
  ls -d $$HOME/.pyenv/versions/$(patsubst python%,%,$(notdir $(PYTHON)))*/bin/python 2>/dev/null | tail -n 1)
ifeq ($(INTERPRETER),)
  $(error no interpreter '$(PYTHON)': install Python 3.11 to 3.13, or say which one with PYTHON=/path/to/python)
endif

VERSION := $(shell $(INTERPRETER) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
VENV := .venv-$(VERSION)
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TESTS ?= tests

.PHONY: bench demo test test-long test-npu venv clean

demo: $(INSTALLED)
	$(BIN)/python examples/demo.py --directory build/demo

test: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not long" $(TESTS)

test-long: $(INSTALLED)
	$(BIN)/python -m pytest -n 2 --dist worksteal -m long $(TESTS)

# Builds projects with CANN's compiler and runs them on an NPU; needs both, and says what is missing.
test-npu: $(INSTALLED)
	JASCEND_TEST_NPU=1 $(BIN)/python -m pytest -n 0 tests/test_npu.py

bench: $(INSTALLED)
	$(BIN)/python benchmarks/fusion.py
	$(BIN)/python benchmarks/fusion_moe.py

venv: $(INSTALLED)

$(INSTALLED): pyproject.toml
	$(INTERPRETER) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	touch $@

clean:
	rm -rf build .venv-3.* *.egg-info
