# Every target sets itself up in .venv; nothing needs to be installed by hand beyond Python 3.11+ (or uv) and make.
.PHONY: sweep bench help soak test suites lint audit defects mutants compare-power report-size mac-suite wrong-pf requirements clean

help:
	@echo 'make soak    four minutes of chaos on the embedded cluster, then the tables'
	@echo 'make test    linters, types and tests'
	@echo 'make suites  the long tests: namespaces, virtual Macs, scenarios, a part of the sweep (as root)'
	@echo 'make lint    linters and types only'
	@echo 'make defects give the embedded cluster each known defect and see that a check finds it'
	@echo 'make mutants make small wrong changes to the analysis and see that a test finds them'
	@echo 'make sweep   end controller, script or SSH in every transition of every fault; nothing may be left behind (root)'
	@echo 'make audit   compare the journal of a soak with what the embedded cluster itself recorded'
	@echo 'make compare-power  how often rig compare cries wolf, and how often it finds what is there'
	@echo 'make report-size    how long the reports of a run of three hours take'
	@echo 'make bench   what the rig itself costs: load engine, peers, fault timing, memory, reports, start, overhead; results/bench has the JSON'
	@echo 'make mac-suite      what macOS does, and the node scripts on it: on this Mac (with sudo), else on a virtual one (as root)'
	@echo 'make wrong-pf       wrong ways to cut a Mac off, each of which must be caught (Linux, as root)'

soak:
	@.ci/venv run
	@.venv/bin/rig soak --minutes 4 --yes

# What is bound to timing runs once more when it failed on a busy machine: alone, in one process. Failing twice is failing.
pytest = .venv/bin/python -m pytest -n 2 --dist loadfile $(1) || \
	{ echo 'once more, what failed:'; .venv/bin/python -m pytest --last-failed --last-failed-no-failures none $(1); }

test: lint
	$(call pytest,$(SUITES:%=--ignore=tests/%))

# The long ones: they wait for long, or need network namespaces of their own. CI runs both.
SUITES = hosts mac openai verify sweep defects mutation
suites:
	@.ci/venv dev
	$(call pytest,$(SUITES:%=tests/%))

lint:
	@.ci/venv dev
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/basedpyright
	.venv/bin/lint-imports
	.venv/bin/shellcheck -x -s sh faults/*.sh .ci/venv
	.venv/bin/shellcheck .ci/run

audit:
	@.ci/venv dev
	.venv/bin/python -m rig.lab.audit

compare-power:
	@.ci/venv dev
	.venv/bin/python -m bench.compare_power

report-size:
	@.ci/venv dev
	.venv/bin/python -m bench.report_size

# About ten minutes. Each runs by itself, too: `python -m bench.NAME --help`. One that misses a target does not end the rest.
bench:
	@.ci/venv dev
	@mkdir -p results/bench
	-.venv/bin/python -m bench.load_engine --quick --json results/bench/load_engine.json
	-.venv/bin/python -m bench.peers --json results/bench/peers.json
	-.venv/bin/python -m bench.fault_timing --json results/bench/fault_timing.json
	-.venv/bin/python -m bench.flat_memory --requests 100000 --json results/bench/flat_memory.json
	-.venv/bin/python -m bench.report_size --days 1 --json results/bench/report_size.json
	-.venv/bin/python -m bench.start --json results/bench/start.json
	-.venv/bin/python -m bench.overhead --json results/bench/overhead.json

# ONLY="no-grace two-masters" plays only those, SEED=7 repeats a draw, REAL=1 plays against real processes,
# WRITE=1 puts the table into docs/defects.md.
defects:
	@.ci/venv dev
	.venv/bin/python -m tests.defects $(ONLY) $(if $(SEED),--seed $(SEED)) $(if $(REAL),--real) $(if $(WRITE),--write)

# COUNT=0 takes all, MODULE=outage only those of modules whose name holds this.
mutants:
	@.ci/venv dev
	.venv/bin/python -m tests.mutation $(if $(COUNT),--count $(COUNT)) $(if $(SEED),--seed $(SEED)) \
		$(if $(MODULE),--module $(MODULE))

mac-suite:
	@.ci/venv dev
	.venv/bin/python -m pytest -p no:xdist tests/mac

wrong-pf:
	@.ci/venv dev
	.venv/bin/python -m tests.mac.wrong_pf

# Every transition of every fault, with controller, script or SSH ended there (Linux, root; about 10 minutes).
sweep:
	@.ci/venv dev
	.venv/bin/python -m tests.sweep

# Renews the hash-pinned requirements from pyproject.toml; needs uv.
requirements:
	uv pip compile pyproject.toml --extra build --generate-hashes --universal --python-version 3.11 \
		--no-emit-index-url --no-emit-find-links --no-header -q -o .ci/requirements.txt
	uv pip compile pyproject.toml --extra build --extra dev --generate-hashes --universal --python-version 3.11 \
		--no-emit-index-url --no-emit-find-links --no-header -q -o .ci/requirements-dev.txt

clean:
	rm -rf .venv
