# make accept   bring up a virtual cluster and run the quick Ethernet acceptance on it
# make test     unit, law, guard and contract tests
# make check    make lint, then make test
# make check-long  searches that take minutes: laws with new examples, 100,000 mutated outputs
# make lint     format, lint, types, import contracts, spelling
# make proof  how often the verdict is wrong: simulated faults and clean nights, some minutes
# make docs     the manual page, and the documents as a site that is searched without a network
# make down     take the virtual cluster down
# make integration-long  what CI leaves out too: every stack, every fault, some 90 minutes
# make rdma     real verbs: guests with Soft-RoCE, the quick infiniband suite, faults
.POSIX:
.PHONY: accept test check check-long lint install down integration integration-long night rdma spack roll proof proof-long bench bench-short docs clean

BIN = .venv/bin

accept:
	@ci/accept.sh

install:
	@ci/bootstrap.sh python

test: install
	@$(BIN)/pytest -n auto --dist loadfile

check: lint
	@$(BIN)/pytest -n auto --dist loadfile

check-long: install
	@$(BIN)/pytest -n auto --dist loadfile --hypothesis-profile search
	@$(BIN)/pytest -s -m long --timeout 3600 tests/benchmarks/parsers/test_fuzz.py

lint: install
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check --no-cache .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache > /tmp/fabricproof-imports.$$$$ 2>&1; status=$$?; \
	    [ $$status -eq 0 ] || cat /tmp/fabricproof-imports.$$$$; \
	    rm -f /tmp/fabricproof-imports.$$$$; exit $$status
	@$(BIN)/codespell src checks docs tests ci README.md CHANGELOG.md CONTRIBUTING.md

integration:
	@ci/integration.sh

integration-long:
	@ci/integration.sh long

night:
	@ci/night.sh

rdma: install
	@ci/rdma.sh

spack: install
	@ci/spack.sh

roll: install
	@for each in $$($(BIN)/fabricproof site list); do \
		$(BIN)/fabricproof site roll $$each --write || exit; done

bench: install
	@for each in benchmarks/*.py; do $(BIN)/python $$each --full || exit; done

bench-short: install
	@for each in benchmarks/*.py; do echo "== $$each"; $(BIN)/python $$each || exit; done

proof: install
	@$(BIN)/python -m proof

proof-long: install
	@$(BIN)/python -m proof --full --page docs

down:
	@$(BIN)/fabricproof vcluster down

docs: install
	@$(BIN)/python ci/man_page.py
	@python3 -m venv build/docs-env && build/docs-env/bin/pip install -q mkdocs-material==9.8.2
	@NO_MKDOCS_2_WARNING=1 build/docs-env/bin/mkdocs build --strict -q -f ci/mkdocs.yml
	@echo "build/site/index.html"

clean:
	rm -rf work .mypy_cache .ruff_cache .pytest_cache .hypothesis
