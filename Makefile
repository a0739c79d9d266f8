# Bare `make` lists the targets.
.DEFAULT_GOAL := help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_SECONDS ?= 180
# Tests start hundreds of processes: without its byte code each of them compiles the same modules for a second.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help
help: ## list the targets
	@awk 'BEGIN{FS=":.*## "} /^[a-z-]+:.*## /{printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: check-python
check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "rackwise needs Python 3.11 or newer as '$(PYTHON)'. Install it (Debian: apt-get install python3 python3-venv) or say 'make PYTHON=/path/to/python3 ...'."; exit 2; }

$(VENV)/.ready: requirements-dev.lock pyproject.toml | check-python
	@echo "building the virtual environment in $(VENV) (1.6 GB, a minute or more) ..."
	@$(PYTHON) -m venv $(VENV)
	@# uv takes a third of pip's time; where only pip is configured to reach packages, pip installs them
	@awk '/^uv==/ {on = 1} on {print} on && !/\\$$/ {exit}' requirements-dev.lock > $(VENV)/uv.lock
	@$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r $(VENV)/uv.lock
	@UV_HTTP_TIMEOUT=180 $(BIN)/uv pip install -q --no-config --python $(BIN)/python --require-hashes -r requirements-dev.lock || \
	  $(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@$(BIN)/pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: venv
venv: $(VENV)/.ready ## build the virtual environment from the lock file

.PHONY: demo
demo: venv $(if $(filter-out 0,$(DEMO_PLUGIN)),jar) ## a live cluster, real groups and the agent in dry run (DEMO_PLUGIN=1: brokers get the plug-in)
	@DEMO_SECONDS=$(DEMO_SECONDS) $(BIN)/rackwise demo

.PHONY: demo-spark
demo-spark: venv ## the demo with the Spark pipeline beside it, up to its report (SPARK=1 make demo is the same)
	@SPARK=1 DEMO_SECONDS=$(DEMO_SECONDS) $(BIN)/rackwise demo

.PHONY: test
test: venv jar lint imports ## what CI runs: lint, types, import rules, all quick tests on real brokers
	@# tests on brokers mostly wait, so two lanes of them run side by side; the others take what they leave of the machine
	@$(MAKE) --no-print-directory -j 4 on-brokers manual others-beside deploy-tools

.PHONY: others-beside
others-beside: venv
	@# the pipeline takes longest and has one lane, so it begins first and goes before those that have two
	@nice -n 8 $(MAKE) --no-print-directory pipeline types java unit UNIT="nice -n 5"

.PHONY: deploy-tools
deploy-tools: venv ## helm, kubeconform and kustomize for the tests of packages, by Go, into the user's cache
	@nice -n 5 $(BIN)/python -m tests.deploy.tooling

.PHONY: jar
jar: ## the plug-in for brokers and the log of tables in S3, where the wheel takes them from (KAFKA=kafka-4.4: against that version)
	@mvn -B -q -f jvm/pom.xml $(if $(KAFKA),-P$(KAFKA)) package -Dmaven.test.skip=true
	@mvn -B -q -f jvm/tables/pom.xml package
	$(call whole,jvm/target,agent/cli/jars,rackwise-kafka.jar)
	$(call whole,jvm/tables/target,pipeline/jars,rackwise-tables.jar)

define whole
	@mkdir -p $(2) && cp $(1)/$(3) $(2)/.$(3) && mv $(2)/.$(3) $(2)/$(3) && ls $(2)/$(3)
endef

.PHONY: java
java: ## the jar and its tests: golden groups, every assignment of tiny ones (KAFKA as for jar)
	@mvn -B -q -f jvm/pom.xml $(if $(KAFKA),-P$(KAFKA)) verify

.PHONY: jvm-compare
jvm-compare: venv ## the plug-ins beside the optimum (GROUPS, default 20,000; APPLICATIONS, default 1,500; SEED, default 1)
	$(BIN)/python -m tests.jvm.compare --groups $(or $(GROUPS),20000) --seed $(or $(SEED),1)
	$(BIN)/python -m tests.jvm.compare_tasks --applications $(or $(APPLICATIONS),1500) --seed $(or $(SEED),1)

.PHONY: bench-jvm
bench-jvm: ## the plug-ins beside those of Kafka (JMH, about 10 minutes; BENCH="-p partitions=10000": options of JMH)
	@mvn -B -q -f jvm/pom.xml -Pbench test-compile dependency:build-classpath -Dmdep.outputFile=target/bench.classpath
	java -cp jvm/target/classes:jvm/target/test-classes:$$(cat jvm/target/bench.classpath) org.openjdk.jmh.Main $(BENCH)

.PHONY: lint
lint: venv ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

.PHONY: fmt
fmt: venv ## format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: types
types: venv ## mypy --strict; of tests, that what they call is there
	$(BIN)/mypy

.PHONY: imports
imports: venv ## who may know whom
	$(BIN)/lint-imports

.PHONY: unit
unit: venv ## tests that need no broker
	$(UNIT) $(BIN)/pytest -q -n 2 --dist worksteal -m "not integration and not drill" --ignore=tests/pipeline

.PHONY: pipeline
pipeline: venv ## tests of the Spark pipeline, all in one session
	$(BIN)/pytest -q -n 0 --durations 15 -m "not drill" tests/pipeline

.PHONY: integration
integration: on-brokers manual ## tests on real brokers (RACKWISE_TEST_BOOTSTRAP: against that cluster)

.PHONY: on-brokers
on-brokers: venv
	$(BIN)/pytest -q --durations 25 -m "integration and not drill" --ignore=tests/pipeline --ignore=tests/manual

.PHONY: manual
manual: venv ## the how-tos that take seconds, as they are written, on clusters of their own
	$(BIN)/pytest -q --durations 5 -m "integration and not drill" tests/manual

.PHONY: drill
drill: venv ## long tests and drills of faults, with their table (DRILL="tests/drill tests/act": some of them)
	$(BIN)/pytest -q -m drill $(DRILL)

.PHONY: model
model: venv ## the executor's model checker in the long run (RACKWISE_MODEL_STATES: of each of its five worlds)
	$(BIN)/pytest -q -s -n 0 -m drill --durations 0 tests/execute/test_model.py

.PHONY: properties
properties: venv ## every example of the assignors' and optima's properties (RACKWISE_EXAMPLES=5: five times as many)
	RACKWISE_EXAMPLES=$(or $(RACKWISE_EXAMPLES),1) $(BIN)/pytest -q -n 2 --dist worksteal -m "not integration" tests/assignors

.PHONY: house
house: venv ## figures of the code's structure beside their bounds (python -m tests.docs.house --lower: lower these)
	@$(BIN)/python -m tests.docs.house

.PHONY: sentences
sentences: venv ## write the list of all sentences that an operator can see anew (tests/golden/sentences.txt)
	$(BIN)/python -m tests.docs.sentences

.PHONY: schemas
schemas: venv ## write the schemas of topics and of what commands print anew (docs/schemas, docs/operations.md, docs/telemetry.md)
	$(BIN)/python -m tests.docs.schemas
	$(BIN)/python -m tests.docs.documents
	$(BIN)/python -m tests.docs.openapi

.PHONY: pictures
pictures: venv ## take the screenshots of the manual anew, with Chromium on a live cluster (docs/pictures)
	RACKWISE_PICTURES=docs/pictures $(BIN)/pytest -q -n 0 tests/browser

.PHONY: reference
reference: venv ## write the reference of the manual anew, from the code (docs/reference)
	$(BIN)/python -m tests.docs.reference

.PHONY: docs
docs: venv ## build the manual into build/site; its readers need no network either
	@$(BIN)/python -m deploy.manual.build

.PHONY: howtos
howtos: venv ## the how-tos as they are written, those that take minutes among them
	$(BIN)/pytest -q -n 0 --durations 0 -m "integration or drill" tests/manual

.PHONY: assets
assets: venv ## fetch the browser libraries of the page and its tests by npm, as pinned in their vendor.lock.json
	$(BIN)/python -m tests.web.page.fetch_assets

.PHONY: dashboards
dashboards: venv ## write the Grafana dashboards anew (deploy/grafana/dashboards)
	$(BIN)/python -m deploy.grafana.generate

.PHONY: alerts
alerts: venv ## write the texts of firing alerts anew (tests/golden/alerts.json)
	$(BIN)/python -m tests.deploy.alerts

.PHONY: test-compose
test-compose: venv ## the integration tests against docker-compose.yml (needs a Docker engine)
	docker compose up -d --wait
	RACKWISE_TEST_BOOTSTRAP=127.0.0.1:19092,127.0.0.1:29092,127.0.0.1:39092 RACKWISE_TEST_DRIVER=compose \
	  $(BIN)/pytest -q -m "integration and not drill"; status=$$?; docker compose down -v; exit $$status

.PHONY: bench
bench: venv ## the figures of docs/benchmarks.md
	$(BIN)/python -m tests.bench

.PHONY: bench-scaleout
bench-scaleout: venv ## a Streams application grows, with rackwise (SCALEOUT="--alone": and one without, ten minutes more)
	$(BIN)/python -m tests.bench.scaleout $(SCALEOUT)

.PHONY: bench-spark
bench-spark: venv ## the pipeline's figures of docs/benchmarks.md (BENCH="ingest fleet": some of them)
	$(BIN)/python -m tests.bench.spark $(BENCH)

.PHONY: fuzz
fuzz: venv ## fuzz decoders by coverage (FUZZ_SECONDS, default 60), then a million records of all five topics
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements-fuzz.lock
	$(BIN)/python tests/fuzz/fuzz_decode.py -max_total_time=$(or $(FUZZ_SECONDS),60)
	$(BIN)/python -m tests.fuzz.campaign --record build/fuzz/topics.jsonl --inputs 1000000 --processes 2 \
	  --only commands --only journal --only proposals --only telemetry --only weights

.PHONY: schemathesis
schemathesis: venv ## the API against its OpenAPI document (SCHEMATHESIS_CASES, default 10,000 at least)
	SCHEMATHESIS_CASES=$(or $(SCHEMATHESIS_CASES),10000) $(BIN)/python -m tests.web.fuzz_api

.PHONY: fuzz-campaign
fuzz-campaign: venv ## the recorded campaign of docs/fuzz.md; goes on where it stopped (FUZZ_INPUTS, default 10^8)
	$(BIN)/python -m tests.fuzz.campaign --inputs $(or $(FUZZ_INPUTS),100000000) --processes 2

.PHONY: mutants
mutants: venv ## mutants of what acts, against its tests (MUTANTS, default 600; SEED, default 1; MUTANTS_OUT=FILE)
	$(BIN)/pip install -q --disable-pip-version-check --require-hashes -r requirements-mutants.lock
	$(BIN)/python -m tests.mutation --count $(or $(MUTANTS),600) --seed $(or $(SEED),1) $(if $(MUTANTS_OUT),-o $(MUTANTS_OUT))

.PHONY: lock
lock: venv ## resolve the lock files anew
	@# universal: one file for every supported Python; hashes only, no index named
	for f in requirements "requirements-notify --extra notify" \
	    "requirements-dev --extra dev --extra notify --extra spark" "requirements-spark --extra spark" "requirements-fuzz --extra fuzz" \
	    "requirements-mutants --extra mutants --extra dev"; do \
	  set -- $$f; out=$$1; shift; \
	  $(BIN)/uv pip compile -q pyproject.toml "$$@" --universal --generate-hashes --no-header \
	    --python-version 3.11 -o $$out.lock || exit 1; done

.PHONY: dist
dist: venv ## the files of a release, of the last commit, in dist/: wheel, sdist, chart, unit file, dashboards, SBOM, SHA256SUMS
	@$(BIN)/python -m deploy.release.dist

.PHONY: clean
clean: ## remove what was built here
	rm -rf $(VENV) build dist agent/cli/jars pipeline/jars mutants .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
