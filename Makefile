# make run: the article's experiment and a real corpus.  make test: every test.  make help: the rest.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
CORES ?= all
ARGS ?=
# Groups of tests that share a fixture stay in one worker; pytest-xdist 3.8 groups none under pytest 9.
PYTEST_ARGS ?= -n 2 --dist loadgroup
IN_VENV := PATH="$(CURDIR)/$(VENV)/bin:$$PATH"

.PHONY: help run slurm slurm-check slurm-estimate test lint format bench schema clean
.DEFAULT_GOAL := help

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(VENV)/.cpu: envs/cpu.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $$($(PYTHON) --version) is too old: install Python 3.11 or newer, or name one with PYTHON=..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "make: $(PYTHON) cannot make virtual environments: run 'apt-get install python3-venv', then make again"; exit 1; }
	@[ -x $(VENV)/bin/pip ] || { rm -rf $(VENV); $(PYTHON) -m venv $(VENV); }
	@echo "Installing the pinned packages into $(VENV) (a few minutes the first time)"
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check -r envs/cpu.txt
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.cpu envs/dev.txt
	@echo "Installing what tests and linters need into $(VENV)"
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check -r envs/cpu.txt -r envs/dev.txt
	@touch $@

$(VENV)/.h100: $(VENV)/.cpu envs/h100.txt
	@echo "Installing what GPU nodes need into $(VENV) (several GB the first time)"
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check -r envs/h100.txt
	@$(VENV)/bin/python -c 'import sys, torch; torch.version.cuda or sys.exit( \
	  f"make: torch {torch.__version__} in $(VENV) is a build without CUDA: remove $(VENV) and make again " \
	  "where pip finds CUDA builds (see: pip config list, and the PIP_ variables)")'
	@touch $@

run: $(VENV)/.cpu  ## the default experiment: results/article/
	@$(IN_VENV) scripts/run.sh --cores $(CORES) $(ARGS)
	@cat results/article/tables/headline.txt

slurm: $(VENV)/.h100  ## config/h100.yaml on a cluster; goes on after a lost login node
	@$(IN_VENV) cpbalance slurm check --profile slurm-h100
	@$(IN_VENV) scripts/run.sh --cancel-jobs --profile slurm-h100 $(ARGS)

slurm-check: $(VENV)/.cpu  ## whether this site can run what the profile asks for
	@$(IN_VENV) cpbalance slurm check --profile slurm-h100

slurm-estimate: $(VENV)/.cpu  ## GPU-minutes that config/h100.yaml will take
	@$(IN_VENV) cpbalance estimate --configfile config/h100.yaml

test: $(VENV)/.dev  ## every test that this machine can run
	@$(IN_VENV) pytest $(PYTEST_ARGS)

lint: $(VENV)/.dev  ## ruff, snakefmt, snakemake --lint
	@$(IN_VENV) ruff check .
	@$(IN_VENV) ruff format --check .
	@$(IN_VENV) snakefmt --check --compact-diff Snakefile workflow
	@$(IN_VENV) snakemake --lint

format: $(VENV)/.dev  ## rewrite the code in the house format
	@$(IN_VENV) ruff check --fix .
	@$(IN_VENV) ruff format .
	@$(IN_VENV) snakefmt Snakefile workflow

bench: $(VENV)/.dev  ## speed, as ratios within one run
	@$(IN_VENV) python -m bench

schema: $(VENV)/.cpu  ## write the JSON schema of the configuration
	@$(IN_VENV) cpbalance schema --output workflow/schemas/config.schema.json

clean:  ## with YES=1: remove results (timings too), logs, Snakemake's notes; the environment stays
	@[ "$(YES)" = 1 ] || { echo "make: this removes results/, measured timings too; say make clean YES=1"; exit 1; }
	rm -rf results/* logs .snakemake
	git checkout -q -- results
