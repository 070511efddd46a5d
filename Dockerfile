# dcdc in a container that runs as a plain user; two variants, by --target:
#
#   docker build --target cuda -t dcdc:cuda .
#   docker build --target cpu -t dcdc:cpu --build-arg TORCH_INDEX=ADDRESS .
#
# The usual package index has builds of torch for Linux that bring CUDA along, several gigabytes. ADDRESS is that of an index
# with builds for CPUs alone, which the install page of PyTorch names.
#
#   docker run --rm -v "$PWD:/data" -v dcdc-cache:/cache dcdc:cpu fit photos/ --clusters 12
#   docker run --rm --gpus all -v "$PWD:/data" -v dcdc-cache:/cache dcdc:cuda fit photos/ --clusters 12
#
# /data is the current folder: it must be writable for user 1000, or add --user "$(id -u):$(id -g)". /cache keeps decoded images.

ARG PYTHON=3.12
ARG EXTRAS=efficientnet,onnx

FROM python:${PYTHON}-slim AS sources
WORKDIR /sources
COPY pyproject.toml MANIFEST.in README.md CHANGELOG.md CITATION.cff LICENSE constraints.txt ./
COPY src src
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/dcdc

FROM sources AS installed-cpu
ARG EXTRAS
ARG TORCH_INDEX
RUN test -n "$TORCH_INDEX" || { echo "name an index with CPU builds of torch: --build-arg TORCH_INDEX=ADDRESS"; exit 2; }
RUN /opt/dcdc/bin/pip install -c constraints.txt --index-url "$TORCH_INDEX" torch
RUN /opt/dcdc/bin/pip install -c constraints.txt ".[$EXTRAS]"

FROM sources AS installed-cuda
ARG EXTRAS
RUN /opt/dcdc/bin/pip install -c constraints.txt ".[$EXTRAS]"

FROM python:${PYTHON}-slim AS runtime
RUN useradd --create-home --uid 1000 dcdc \
    && mkdir /data /cache && chmod 1777 /data /cache
ARG COMMIT=
ENV PATH=/opt/dcdc/bin:$PATH \
    DCDC_DATA=/cache \
    DCDC_COMMIT=$COMMIT \
    MPLCONFIGDIR=/tmp/matplotlib
WORKDIR /data
ENTRYPOINT ["dcdc"]
CMD ["--help"]

FROM runtime AS cuda
# Triton compiles a small part of its launcher in C.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
COPY --from=installed-cuda /opt/dcdc /opt/dcdc
ENV NVIDIA_VISIBLE_DEVICES=all NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 1000

FROM runtime AS cpu
COPY --from=installed-cpu /opt/dcdc /opt/dcdc
USER 1000
