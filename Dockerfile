# Serving only: the plain install, without torch. Build it where bundles/ is complete. `--target gpu` adds CUDA
# (docs/gpu.md); the last stage is for CPUs.
# Python 3.14.8. The digests here and in docker-compose.yml are read off other repositories (RELEASING.md), not pulled.
ARG PYTHON=python:3.14-slim@sha256:a2b82f3c48559aa0a8446d9af49826b6e2b2016f4cd2afabfe6013ec53729170

FROM ${PYTHON} AS build
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*  # for kernels/
WORKDIR /src
COPY packaging/locked packaging/locked
RUN python -m venv /opt/heedful && /opt/heedful/bin/pip install --no-cache-dir --require-hashes --requirement packaging/locked/serve.txt
COPY pyproject.toml setup.py README.md LICENSE ./
COPY heedful heedful
COPY app app
COPY cli cli
COPY export export
COPY files files
COPY kernels kernels
COPY library library
COPY models models
COPY runtime runtime
COPY text text
COPY training training
RUN /opt/heedful/bin/pip install --no-index --no-deps --no-build-isolation .

# Without the CUDA provider and symbols, 655 MB are 241 (docs/operations.md); what auditwheel patched, *.libs, cannot be stripped.
FROM build AS build-cpu
RUN cd "$(/opt/heedful/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')" && \
    rm -f onnxruntime/capi/libonnxruntime_providers_cuda.so onnxruntime/capi/libonnxruntime_providers_tensorrt.so && \
    find . -name '*.so' -not -path '*.libs/*' -exec strip --strip-unneeded {} +

FROM build AS build-gpu
RUN /opt/heedful/bin/pip install --no-cache-dir --require-hashes --requirement packaging/locked/gpu.txt

FROM ${PYTHON} AS serve
RUN useradd --system --create-home heedful
COPY bundles /srv/heedful/bundles
ENV PATH=/opt/heedful/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    HEEDFUL_HOST=0.0.0.0 \
    HEEDFUL_PORT=8000 \
    HEEDFUL_MODELS=/srv/heedful/bundles
WORKDIR /srv/heedful
USER heedful
EXPOSE 8000
# Past the proxy that Docker's client sets in every container where its configuration names one.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import os, ssl, urllib.request as u; s = 'https' if os.environ.get('HEEDFUL_TLS_CERT') else 'http'; o = u.build_opener(u.ProxyHandler({}), u.HTTPSHandler(context=ssl._create_unverified_context())); o.open(f'{s}://127.0.0.1:{os.environ[\"HEEDFUL_PORT\"]}/ready', timeout=4)"]
CMD ["heedful", "serve"]

FROM serve AS gpu
COPY --from=build-gpu /opt/heedful /opt/heedful
ENV HEEDFUL_DEVICE=cuda

FROM serve AS cpu
COPY --from=build-cpu /opt/heedful /opt/heedful
