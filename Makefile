# `make` lists the targets. Each target sets up .venv and builds the files that it needs, if they are not up to date.
#
# Stamp files in .venv/stamps and build/stamps record the finished steps. make compares their dates with pyproject.toml,
# setup.py, and the Cython and C sources. tools/build_once.py then compiles the sources whose contents have changed.
# The output of pip and the compilers goes to build/logs and is shown on failure.

PYTHON ?= python3
ARGS   ?=
# The version that `make bench` compares with. tools/install_torch.py explains why it is not an extra.
TORCH  ?= torch==2.13.0
BOOK   ?= build/book

VENV    := .venv
PY      := $(VENV)/bin/python
STAMPS  := $(VENV)/stamps
QUIETLY := tools/quietly
PIP     := $(PY) -m pip --disable-pip-version-check install -q
NEEDS    = $(PY) tools/requirements.py
HANDED   = $(PY) tools/handed_kernels.py

NATIVE  := setup.py tools/build_once.py tools/handed_kernels.py src/flowedu/_kernels/processor.py $(shell find src -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.h')
SCRIPTS := $(shell find src course -name '*.py')
# Stamp of the kernels for this processor's instruction set. Its name contains the processor, because the folder may be
# moved to another machine. ALL is the stamp of the kernels for all instruction sets, which tests and wheels use.
BUILT   := build/stamps/built-$(shell grep -s -m 1 ^flags /proc/cpuinfo | cksum | cut -d ' ' -f 1)
ALL     := build/stamps/built-all
DEBUG   := build/stamps/debug
# The links from .venv to src/ and course/. A moved or copied folder needs new links, because pip writes the full path.
LINK    := $(STAMPS)/linked-$(shell pwd | cksum | cut -d ' ' -f 1)
# Bytecode of the package. If Python may not write bytecode, each start would compile 300 files again.
BYTES   := build/stamps/bytecode
READY   := $(BUILT) $(LINK) $(BYTES)
CUDA    := $(STAMPS)/cuda-set-up

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help stubs doors start check watch hint list solution from-scratch student-tree solutions-tree grade grade-all weights similar questions leaderboard syllabus authors-check frontier book notebooks test test-near test-all test-everywhere test-torch test-mpi test-cuda peers array-api mutants fuzz lint bench bench-scale bench-gpu counters build build-debug test-debug annotate clean

help:  ## list the targets
	@echo "flowedu: make TARGET   (ARGS=\"...\" is passed on to pytest, demo or benchmark)"
	@echo
	@for d in chapters/[0-9]*_*/; do [ -d "$$d" ] || continue; n=$$(basename $$d); \
	    printf '  %-17s%s\n' "chapter-$$(echo $$n | sed 's/^0*\([0-9]*\)_.*/\1/')" \
	        "the lesson and the demo of chapter $$(echo $$n | sed 's/^0*\([0-9]*\)_/\1: /; s/_/ /g')"; done
	@echo "                   (PACE=1 asks before outputs are shown, LESSON=1 leaves the demo out, YOURS=1 runs your answers)"
	@awk -F ':.*## ' '/^[a-z%-]+:.*## / { printf "  %-17s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---- targets for users -----------------------------------------------------------------------------------------

# LESSON=1 leaves the demo out. PACE=1 stops before outputs are shown (the lesson reads it from the environment).
# The recipe looks for the chapter first, so that a wrong number is reported before a long build.
chapter-%:
	@set -- chapters/$*_* chapters/0$*_*; for d do [ -d "$$d" ] && break; done; \
	if [ ! -d "$$d" ]; then \
	    echo "There is no chapter $* yet. Chapters:" $$(ls -d chapters/[0-9]*_* 2>/dev/null | sed 's|.*/||'); exit 1; fi; \
	gpu=$$(grep -qs 'needs=cuda' "$$d"/*.md && echo $(CUDA)); isas=$$(grep -qs 'FLOWEDU_ISA' "$$d"/*.md && echo $(ALL)); \
	$(MAKE) -s --no-print-directory $$isas $(READY) $(STAMPS)/plot $(STAMPS)/image $(STAMPS)/record $$gpu && \
	{ [ -z "$(YOURS)" ] || { export FLOWEDU_HOLES=$${WORK:-work} FLOWEDU_HOLES_SKIP=1; $(PY) -c "from flowedu_course.left_out import describe_code; print(describe_code())"; }; } && \
	{ [ -z "$$gpu" ] || { FLOWEDU_CUDA=$$($(PY) tools/choose_cuda.py) && export FLOWEDU_CUDA; }; } && \
	$(PY) -m flowedu_course.lesson "$$d" && \
	{ [ -n "$(LESSON)" ] || $(PY) "$$d/demo.py" $(ARGS); }

# Exercises: answers are in the folder WORK. No file in src/ is written.
start: $(READY)  ## exercises: write the work files of a chapter (CH=4; default: the next chapter)
	@$(PY) -m flowedu_course start $(CH)

check: $(READY)  ## exercises: check one exercise (EX=4.3; default: the next one)
	@$(PY) -m flowedu_course check $(EX)

watch: $(READY)  ## exercises: check each work file when you save it (EX=4.3: start with this one); keys: next, hint, list, debug
	@$(PY) -m flowedu_course watch $(EX)

hint: $(READY)  ## exercises: show the next hint (EX=4.3)
	@$(PY) -m flowedu_course hint $(EX)

list: $(READY)  ## exercises: list all exercises and their state (FAST=1: one exercise per chapter, for a short course)
	@$(PY) -m flowedu_course list $(if $(FAST),--fast)

solution: $(READY)  ## exercises: show the library's code, after your answer passed (EX=4.3; FORCE=1: before it passed)
	@$(PY) -m flowedu_course solution $(EX) $(if $(FORCE),--force)

milestone-%: $(READY) $(STAMPS)/plot $(STAMPS)/image $(STAMPS)/record  ## exercises: run the program of a chapter with your answers, for example milestone-4 (LIBRARY=1: with the library's code)
	@$(PY) -m flowedu_course milestone $* $(if $(LIBRARY),--library)

from-scratch: $(READY)  ## exercises: train LeNet with your answers to chapters 1 to 4, and count your functions (LIBRARY=1: with the library's code)
	@$(PY) -m flowedu_course scratch $(if $(LIBRARY),--library)

# For instructors: student trees, and the grading of submissions.
# Its lessons show the outputs that are recorded here, and it has the kernels for all instruction sets.
student-tree: $(ALL) $(READY) $(STAMPS)/plot $(STAMPS)/image $(STAMPS)/record  ## instructors: make a tree with open exercises and no answers (UPTO=4 OUT=../handout [CLOSED=1] [ONLY="4.3 8"])
	@$(PY) -m flowedu_course.teach.tree $(UPTO) $(OUT) --ready $(if $(CLOSED),--closed) $(if $(ONLY),--only $(ONLY))

solutions-tree: $(READY)  ## instructors: collect the answers of chapters 1 to UPTO for the folder solutions/ of a student tree (UPTO=3 OUT=../solutions)
	@$(PY) -m flowedu_course.teach.solutions $(UPTO) $(OUT) $(if $(ONLY),--only $(ONLY))

grade: $(READY)  ## instructors: grade a submission into build/grade (WORK=submission CH=4 SEED=2027)
	@$(PY) -m flowedu_course.teach.grade $(or $(WORK),work) $(or $(CH),all) --seed $(or $(SEED),0) $(if $(WEIGHTS),--weights $(WEIGHTS)) $(if $(REMARKS),--remarks $(REMARKS)) $(ARGS)

grade-all: $(READY)  ## instructors: grade a class with one folder per student (DIR=submissions CH=4 SEED=2027 [WEIGHTS=weights.csv] [REMARKS=remarks.csv] [ROSTER=roster.csv])
	@$(PY) -m flowedu_course.teach.grade $(or $(DIR),submissions) $(or $(CH),all) --all --seed $(or $(SEED),0) $(if $(WEIGHTS),--weights $(WEIGHTS)) $(if $(REMARKS),--remarks $(REMARKS)) $(if $(ROSTER),--roster $(ROSTER)) $(ARGS)

weights: $(READY)  ## instructors: write a table of points to edit, for make grade-all (OUT=weights.csv [CH=4] [BY=time])
	@$(PY) -m flowedu_course.teach.classfile $(or $(CH),all) $(if $(BY),--by $(BY)) --out $(or $(OUT),weights.csv)

similar: $(READY)  ## instructors: list equal and nearly equal answers of a class (DIR=submissions CH=4 [ALIKE=0.9])
	@$(PY) -m flowedu_course.teach.similar $(or $(DIR),submissions) $(or $(CH),all) $(if $(ALIKE),--alike $(ALIKE))

questions: $(READY)  ## instructors: write 30 questions with random values, and a sheet of answers (SEED=7 [CH=4] [OUT=build/questions])
	@$(PY) -m flowedu_course.teach.questions $(or $(SEED),0) $(or $(CH),all) $(if $(OUT),--out $(OUT))

leaderboard: $(READY)  ## instructors: rank the grades of a class by stars, points, and sizes (DIR=build/grade)
	@$(PY) -m flowedu_course.teach.leaderboard $(or $(DIR),build/grade)

syllabus: $(READY)  ## instructors: write the readings and deadlines of each week to OUT or build/syllabus.md (WEEKS=7 [CH=1-4] [FAST=1])
	@$(PY) -m flowedu_course.teach.syllabus $(or $(WEEKS),7) $(or $(if $(FAST),fast),$(CH),all) $(if $(OUT),--out $(OUT))

authors-check: $(READY)  ## check the exercises: each law must reject its wrong answers (FRONTIER=1: more checks; MUTANTS=1: one-token faults)
	@$(if $(MUTANTS),OMP_NUM_THREADS=1 FLOWEDU_NUM_THREADS=1 $(PY) -m flowedu_course.teach.mutants $(EX) $(ARGS),$(PY) -m flowedu_course.authors $(EX) $(if $(FRONTIER),--frontier))

# The default chapter depends on the commit. `make authors-check FRONTIER=1` runs all chapters.
frontier: $(READY) $(STAMPS)/test  ## run lessons and tests up to a chapter while later exercises are stubs (K=4; default: chosen by the commit)
	@$(PY) -m flowedu_course.teach.frontier $(or $(K),--sample)

# Reading the book needs no network. Its pages are those of chapters/. Their outputs are stored in build/book/outputs.
book: $(ALL) $(READY) $(STAMPS)/book $(STAMPS)/plot $(STAMPS)/image $(STAMPS)/record  ## build the lessons, exercises, and reference as a book to read offline
	@$(MAKE) -s --no-print-directory $(CUDA) || echo "The GPU simulator could not be set up: blocks that need it are not run."
	@$(PY) -m sphinx -q -W --keep-going -b html -d "$(BOOK)/doctrees" -c book . "$(BOOK)/html"
	@echo "the book is in $(BOOK)/html/index.html"

notebooks: $(ALL) $(READY) $(STAMPS)/notebooks $(STAMPS)/plot $(STAMPS)/image $(STAMPS)/record  ## write the lessons and the gallery as Jupyter notebooks, with their outputs
	@$(PY) book/notebooks.py

# Tests that are marked slow repeat a law for many similar cases, or take a long time. They run in test-all, and if ARGS
# selects them.
test: $(ALL) $(READY) $(STAMPS)/test  ## run the fast tests (ARGS="-k conv": a selection of all tests)
	@$(PY) -m pytest -n 2 $(or $(ARGS),-m "not slow")

test-near: $(ALL) $(READY) $(STAMPS)/test  ## run the tests nearest to a source file (FILE=src/flowedu/core/sbp/boxing/geometry.py)
	@$(PY) tools/near.py $(FILE) $(ARGS)

# First run the tests that need no GPU simulator. Then run the other tests, if the simulator can be set up.
test-all: $(ALL) $(READY) $(addprefix $(STAMPS)/, test book plot image record notebooks tensorboard)  ## run all tests, also the slow ones and CUDA kernels (CI: a sixteenth of the slow repetitions)
	@$(PY) -m pytest -n 2 -m "not simulator"
	@if $(MAKE) -s --no-print-directory $(CUDA); then $(MAKE) -s --no-print-directory test-cuda && \
	    $(PY) -m pytest -n 2 -m simulator; \
	elif [ -n "$$CI" ]; then exit 1; \
	else echo "The tests above passed. Tests of CUDA kernels were not run: the GPU simulator could not be set up."; fi

# The tests run under the C locale, in a folder with a space, a quote, and an umlaut in its name.
# tools/test_everywhere.py lists them.
test-everywhere: $(ALL) $(READY) $(STAMPS)/test  ## run machine-sensitive tests for each instruction set and 1, 2, 4 threads (ARGS=--sample: a third)
	@$(PY) tools/test_everywhere.py $(ARGS)

doors: $(ALL) $(READY) $(STAMPS)/test  ## run the commands of the documents in a copy of the checkout (part of test-all)
	@$(PY) -m pytest tests/doors $(ARGS)

test-torch: $(ALL) $(READY) $(STAMPS)/test peers  ## run the tests that compare with PyTorch, if it can be installed
	@if $(PY) -c "import torch" 2>/dev/null; then $(PY) -m pytest -n 2 -m torch $(ARGS); \
	else echo "PyTorch is not installed: no tests were run"; fi

test-mpi: $(ALL) $(READY) $(STAMPS)/test peers  ## run the tests that start processes, if MPI can be installed
	@if $(PY) -c "import mpi4py" 2>/dev/null; then $(PY) -m pytest -m mpi tests/dist $(ARGS); \
	else echo "mpi4py is not installed: no tests were run"; fi

test-cuda: $(ALL) $(READY) $(STAMPS)/test $(CUDA)  ## run CUDA kernels in the simulator, with every check (no GPU needed)
	@FLOWEDU_CUDA=sim $(PY) -m pytest -n 2 tests/cuda $(ARGS)

# The peers are large and not available everywhere, so `make test` does not need them. CI fails without them.
peers: $(STAMPS)/base  ## install PyTorch and MPI for the tests, if they are available
	@$(PY) tools/install_torch.py "$(TORCH)"
	@$(PY) -c "import mpi4py" 2>/dev/null || { echo "installing what 'mpi' needs into $(VENV)"; $(PIP) $$($(NEEDS) mpi); } || true
	@[ -z "$$CI" ] || $(PY) -c "import torch, mpi4py" || { echo "CI needs PyTorch and MPI, which could not be installed: see above"; exit 1; }

# SUITE=folder is a checkout of data-apis/array-api-tests. Without a checkout, tools/array_api.py runs no test.
array-api: $(READY) $(STAMPS)/test  ## run the array API standard's test suite on flow.array_api, NumPy, and PyTorch (SUITE=folder)
	@$(PY) -c "import array_api_compat, einops, ndindex, pytest_jsonreport, scipy, sklearn" 2>/dev/null || { \
	    echo "installing what 'array-api' needs into $(VENV)"; $(PIP) $$($(NEEDS) array-api); } || true
	@$(PY) tools/array_api.py $(if $(SUITE),--suite "$(SUITE)") $(ARGS)

fuzz: $(READY)  ## call random functions with invalid arguments, in child processes (ARGS="--seconds 120 --seed 1")
	@$(PY) tools/fuzz.py $(ARGS)

mutants: $(ALL) $(READY) $(STAMPS)/test  ## plant the faults of tests/mutants and check that tests fail (long; ARGS="--only relu")
	@$(PY) tools/mutants.py $(ARGS)

stubs: $(ALL) $(READY)  ## write type stubs for compiled and attached names (.pyi files; core's are in src/flowedu-stubs)
	@$(PY) tools/make_stubs.py $(ARGS)

lint: $(STAMPS)/lint  ## check the style of the code and of the prose, and the types
	@$(PY) -m ruff check . $(ARGS)
	@$(PY) -m mypy
	@$(PY) tools/check_prose.py --check

bench: $(READY) $(STAMPS)/image $(STAMPS)/record $(STAMPS)/plot  ## compare speed with PyTorch and inference runtimes, side by side
	@$(PY) tools/install_torch.py "$(TORCH)"
	@for wheel in $$($(NEEDS) bench | grep -v '^torch'); do $(PIP) "$$wheel" || echo "left out: $$wheel"; done
	@$(PY) benchmarks/run.py $(ARGS)

bench-scale: $(READY) $(STAMPS)/plot  ## measure how time and memory grow with batch, width, depth, length, ops, and devices (ARGS=--quick)
	@$(PY) benchmarks/scale.py $(ARGS)

bench-gpu: $(READY) $(CUDA)  ## compare speed with cuBLAS, copies, and PyTorch on a GPU (ARGS="--simulate --quick": without a GPU)
	@$(PY) benchmarks/gpu.py $(ARGS)

counters: $(READY) $(CUDA)  ## count loads, stores, and waits of the GPU kernels in the simulator
	@FLOWEDU_CUDA=sim $(PY) benchmarks/counters.py $(ARGS)

build: $(ALL) $(READY)  ## compile the kernels for all instruction sets (only what changed)
	@echo "flowedu is built and linked into $(VENV)"

build-debug: $(DEBUG)  ## compile with bounds checks and the address and undefined-behaviour sanitizers
	@echo "the debug build is in build/debug"

test-debug: $(DEBUG) $(STAMPS)/test  ## run the kernel laws under the debug build
	@tools/run_debug $(PY) -m pytest -n 2 --capture=sys -p no:cacheprovider -m "not slow" tests/laws $(ARGS)

annotate: $(STAMPS)/base  ## write Cython's HTML view of the kernels to build/annotate
	@$(QUIETLY) annotate "annotating the Cython sources" tools/annotate $(PY)
	@echo "open build/annotate/*.html: yellow lines call Python, white lines are plain C"

clean:  ## remove everything that was built, except .venv
	@rm -rf build src/*.egg-info .pytest_cache .ruff_cache .hypothesis
	@find src -name '*.so' -delete
	@find src course tests chapters benchmarks tools -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

# ---- build steps -----------------------------------------------------------------------------------------------

$(PY):
	@command -v $(PYTHON) >/dev/null || { echo "'$(PYTHON)' was not found: install Python 3.11 or newer," \
	    "or set its path: make PYTHON=/path/to/python3"; exit 1; }
	@$(PYTHON) tools/check_machine.py python $(if $(wildcard build/kernels/handed.json),,compiler)
	@$(QUIETLY) venv "creating $(VENV)" $(PYTHON) -m venv --clear $(VENV)

# If the creation of a venv was interrupted, it has a Python but no pip.
$(STAMPS)/base: $(PY) pyproject.toml
	@$(PY) tools/check_machine.py python
	@$(PY) -m pip --version >/dev/null 2>&1 || $(QUIETLY) venv "creating $(VENV)" $(PYTHON) -m venv --clear $(VENV)
	@$(QUIETLY) pip-base "installing NumPy, OpenBLAS and the build tools into $(VENV)" $(PIP) $$($(NEEDS) build base)
	@mkdir -p $(@D) && touch $@

# A student tree has compiled kernels. The kernels are compiled again only if these do not fit (tools/handed_kernels.py).
$(BUILT): $(STAMPS)/base $(NATIVE)
	@$(HANDED) native || { $(PY) tools/check_machine.py compiler && FLOWEDU_BUILD_ISA=native \
	    $(QUIETLY) build "building the kernels (a minute the first time, later only what changed)" \
	    $(PY) setup.py -q build_ext --inplace; }
	@mkdir -p $(@D) && touch $@

$(ALL): $(STAMPS)/base $(NATIVE)
	@$(HANDED) all || { $(PY) tools/check_machine.py compiler && \
	    $(QUIETLY) build "building the kernels for all instruction sets (two minutes the first time, later only what changed)" \
	    $(PY) setup.py -q build_ext --inplace; }
	@mkdir -p $(@D) && touch $@ $(BUILT)

# pip also runs setup.py. The kernels are already compiled, so pip only writes the link.
$(LINK): $(PY) pyproject.toml tools/relative_link.py | $(BUILT)
	@FLOWEDU_BUILD_ISA=native $(QUIETLY) link "linking flowedu into $(VENV)" $(PIP) --no-deps --no-build-isolation -e .
	@$(PY) tools/relative_link.py
	@mkdir -p $(@D) && touch $@

$(BYTES): $(PY) $(SCRIPTS)
	@$(PY) -m compileall -q src/flowedu course
	@mkdir -p $(@D) && touch $@

# Set up the headers, the simulator, and PyCUDA. Repeat this when a file of the simulator has changed.
$(CUDA): tools/setup_cuda.py $(shell find src/flowedu/cuda -type f -not -name '*.pyc') pyproject.toml | $(READY)
	@$(PY) tools/setup_cuda.py
	@touch $@

# The extras of pyproject.toml: test, lint, plot, image, record, book, notebooks, tensorboard.
$(STAMPS)/%: $(STAMPS)/base
	@$(QUIETLY) pip-$* "installing what '$*' needs into $(VENV)" $(PIP) $$($(NEEDS) $*)
	@touch $@

# build/debug has a second copy of the whole package, with its Python files. PYTHONPATH selects one of the two.
$(DEBUG): $(STAMPS)/base $(NATIVE) $(SCRIPTS)
	@$(PY) tools/check_machine.py compiler
	@FLOWEDU_DEBUG=1 $(QUIETLY) build-debug "building the debug kernels (minutes the first time, later only what changed)" \
	    $(PY) setup.py -q build --build-lib build/debug
	@mkdir -p $(@D) && touch $@
