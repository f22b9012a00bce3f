# Short names for `python -m lab …`, and a .venv that makes itself. GNU make 3.81 or newer.
# Every path is relative, so the folder may have spaces and accents in its name.
.DEFAULT_GOAL := help
SHELL := /bin/sh

PYTHON ?= python3
# Byte code goes into .venv and __pycache__ even where the user's shell turns it off: without it each
# of the many short-lived processes here compiles SQLAlchemy again, for a second and more.
unexport PYTHONDONTWRITEBYTECODE
EXTRAS := test notebooks api play book docker cdk peers redis k6 dev
TEST_EXTRAS := test notebooks api play redis
STAGES := 0 1 2 3 4 5 6 7 8 9 10

ifeq ($(OS),Windows_NT)
PY := .venv/Scripts/python.exe
else
PY := .venv/bin/python
endif

# A stamp for each lock: .venv/.notebooks is newer than locks/notebooks.lock once that is installed.
CORE := .venv/.core
extra = $(addprefix .venv/.,$(1))
LAB := $(PY) -m lab
N = $(lastword $(subst -, ,$@))

$(PY):
	@$(PYTHON) tools/setup.py

$(CORE): requirements.lock | $(PY)
	@$(PYTHON) tools/setup.py

$(call extra,$(EXTRAS)): .venv/.%: locks/%.lock $(CORE)
	@$(PYTHON) tools/setup.py $*

.PHONY: help
help:  ## this list
	@sed -n 's/^\$$(STAGES:%=\([a-z]*\)-%):[^#]*## /\1-N:## /; s/^\([a-z]*[-N]*\):[^#]*## /  make \1|/p' \
	  Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

.PHONY: setup
setup: $(CORE)  ## make .venv and install the lab (every other target does it by itself)
	@echo "The lab is ready. The first thing to see: make stage-0"

.PHONY: $(STAGES:%=stage-%)
$(STAGES:%=stage-%): $(CORE)  ## tell the story of stage N: what breaks, what holds, what gets through
	@$(LAB) stage $(N)
stage-9: $(call extra,redis)
stage-10: $(call extra,peers)
stage-7: $(call extra,api)  # its load goes through FastAPI

.PHONY: bug
bug: $(CORE)  ## the bug in thirty lines: 00-the-bug/bug.py, run three times by hand
	@$(LAB) run --times 3 00-the-bug/bug.py

.PHONY: $(STAGES:%=explore-%)
$(STAGES:%=explore-%): $(CORE)  ## run every interleaving of stage N and count those that break it
	@$(LAB) explore $(N)

.PHONY: $(STAGES:%=replay-%)
$(STAGES:%=replay-%): $(CORE)  ## run one schedule: make replay-1 SCHEDULE="A.. B..", or CASE=A6
	@$(LAB) replay $(N) "$(SCHEDULE)" $(if $(MY),--my "$(MY)") $(if $(CASE),--case "$(CASE)") \
	  $(if $(EVERYONE),--everyone $(EVERYONE)) $(if $(ROLES),--roles "$(ROLES)") \
	  $(if $(ISOLATION),--isolation "$(ISOLATION)")

.PHONY: $(STAGES:%=exercise-%)
$(STAGES:%=exercise-%): $(CORE)  ## begin the exercises of stage N: they are copied to my/
	@$(LAB) exercise $(N) $(WHICH)

.PHONY: $(STAGES:%=check-%)
$(STAGES:%=check-%): $(CORE)  ## check your answers: make check-3, or make check-3 WHICH=claim
	@$(LAB) check $(N) $(WHICH)

.PHONY: $(STAGES:%=hint-%)
$(STAGES:%=hint-%): $(CORE)  ## the next hint
	@$(LAB) hint $(N) $(WHICH)

.PHONY: $(STAGES:%=reset-%)
$(STAGES:%=reset-%): $(CORE)  ## begin an exercise again; your file is kept as a backup
	@$(LAB) reset $(N) $(WHICH)

.PHONY: $(STAGES:%=solution-%)
$(STAGES:%=solution-%): $(CORE)  ## a right answer, once yours has passed, or with YES=1
	@$(LAB) solution $(N) $(WHICH) $(if $(YES),--yes)

# A number without a stage, of which make would only say that it has no rule.
NUMBERED := stage explore replay exercise check hint reset solution play diff deliver
$(NUMBERED:%=%-%):
	@echo "There is no stage $*. The stages are $(firstword $(STAGES)) … $(lastword $(STAGES))." >&2; exit 2

.PHONY: progress
progress: $(CORE)  ## what you have passed of the whole course
	@$(LAB) progress

.PHONY: check-all
check-all: $(CORE)  ## check a folder of students' work: make check-all DIR=…
	@$(LAB) check-all "$(DIR)"

.PHONY: preflight
preflight: $(CORE) $(call extra,$(TEST_EXTRAS))  ## download and try everything that a room needs
	@$(LAB) preflight

.PHONY: play
play: $(CORE) $(call extra,play)  ## be the scheduler: a live page on which you move the replicas
	@$(LAB) play

.PHONY: $(STAGES:%=play-%)
$(STAGES:%=play-%): $(CORE) $(call extra,play)  ## the same, beginning with stage N
	@$(LAB) play $(N)

.PHONY: $(STAGES:%=diff-%)
$(STAGES:%=diff-%): $(CORE)  ## what changed in the code from stage N-1 to N
	@$(LAB) diff $(N)

.PHONY: synth
synth: $(CORE)  ## make the template of stage 5 for AWS again (needs Node, no account)
	@command -v node >/dev/null || $(LAB) synth  # which says so, before anything is installed
	@$(MAKE) -s $(call extra,cdk)
	@$(LAB) synth

.PHONY: ladder
ladder: $(CORE)  ## stages × scenarios, as a table and as a picture
	@$(LAB) ladder

.PHONY: $(STAGES:%=deliver-%)
$(STAGES:%=deliver-%): $(CORE)  ## deliver a slot as a scheduler would: make deliver-5 HOW="--twice"
	@$(LAB) deliver $(N) $(HOW)

.PHONY: pictures
pictures: $(CORE)  ## draw the pictures of the README again
	@$(LAB) pictures

.PHONY: bench
bench: $(CORE) $(call extra,api notebooks)  ## measure the budgets on this machine (SAVE=1: docs/bench.md)
	@$(LAB) bench $(if $(SAVE),--save)

.PHONY: soak
soak: $(CORE)  ## keep every stage's promise 100 times over, with all processors busy
	@$(LAB) soak

.PHONY: notebook
notebook: $(CORE) $(call extra,notebooks)  ## open the notebooks in JupyterLab (on this machine only)
	@$(LAB) notebooks --open

.PHONY: notebooks
notebooks: $(CORE) $(call extra,notebooks)  ## execute every notebook and save its outputs
	@$(LAB) notebooks

.PHONY: book
book: $(CORE) $(call extra,book)  ## all READMEs and notebooks as a site that works offline
	@$(LAB) book

.PHONY: test
test: $(CORE) $(call extra,$(TEST_EXTRAS) $(if $(CI),book cdk k6 peers))  ## run every test (PYTEST="-k word" to choose, JOBS=4: four processes)
	@$(PY) tools/packages.py
	@$(PY) -m pytest $(if $(JOBS),-n $(JOBS) --dist worksteal) $(PYTEST)

.PHONY: doctor
doctor: $(CORE)  ## which Postgres would be used, and what is wrong
	@$(LAB) doctor

.PHONY: clean
clean:  ## stop the lab's server, drop its databases, delete what it wrote; .venv and my/ stay
	@if [ -x $(PY) ]; then $(LAB) clean; fi

.PHONY: lint
lint: $(call extra,dev)  ## check the style of the code (ruff)
	@$(PY) -m ruff check .

# Locks are made by uv, for Python 3.11 to 3.14 on Linux, macOS and Windows, with one resolution
# for all extras so that they fit into one .venv. `make lock UPGRADE=--upgrade` takes newer versions.
COMPILE := uv pip compile --quiet --universal --python-version 3.11 --no-header --no-annotate \
	--no-config
.PHONY: lock
lock:  ## resolve the dependencies again (needs uv)
	@command -v uv >/dev/null || { echo "make lock needs uv: pip install uv" >&2; exit 2; }
	@$(COMPILE) $(UPGRADE) --all-extras pyproject.toml -o locks/all.txt
	@$(COMPILE) --generate-hashes -c locks/all.txt pyproject.toml -o requirements.lock
	@echo uv | $(COMPILE) --generate-hashes $(UPGRADE) - -o locks/uv.lock
	@for extra in $(EXTRAS); do \
	  $(COMPILE) --generate-hashes -c locks/all.txt --extra $$extra pyproject.toml \
	    -o locks/$$extra.lock || exit 1; done
