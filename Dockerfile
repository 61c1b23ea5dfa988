# syntax=docker/dockerfile:1
#
#   docker build --target cpu  -t dreamguard .         static binary, plain Go: training, judging, everything
#   docker build --target serve -t dreamguard:serve .  the same, as the HTTP service with a health check
#   docker build --target cuda -t dreamguard:cuda .    training and encoders on NVIDIA GPUs (x86-64, 4 GB)
#
#   docker run --rm --user "$(id -u):$(id -g)" -v "$PWD:/work" dreamguard run --out runs/demo
#   docker run --rm --gpus all --user "$(id -u):$(id -g)" -v "$PWD:/work" dreamguard:cuda doctor
#
# Build and run stage of the cuda target have the same C library: keep their
# Debian releases alike.

FROM golang:1.26-bookworm AS source
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .

FROM source AS build-cpu
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOFLAGS=-trimpath make build

FROM source AS build-cuda
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=1 GOFLAGS='-trimpath -tags=xla' make build

# The plugin and CUDA's libraries, from packages that are pinned by their hashes.
FROM python:3.13-slim-bookworm AS plugin-cuda
COPY scripts/xla-cuda.sh scripts/pip.sh scripts/requirements-xla-cuda13.txt /scripts/
RUN --mount=type=cache,target=/root/.cache/pip /scripts/xla-cuda.sh /opt/xla

# Debian's own package manager brings the C++ library that the plugin needs.
FROM debian:bookworm-slim AS cuda
COPY --from=source /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=plugin-cuda /opt/xla /opt/xla
COPY --from=build-cuda /src/bin/dreamguard /usr/local/bin/dreamguard
COPY LICENSE NOTICE* /usr/share/doc/dreamguard/
# What /opt/xla/env.sh sets, and what the container runtime passes in of the driver.
ENV PJRT_PLUGIN_LIBRARY_PATH=/opt/xla/lib/go-xla/nvidia \
    LD_LIBRARY_PATH=/opt/xla/lib/go-xla/nvidia/cu13/lib:/opt/xla/lib/go-xla/nvidia/cudnn/lib:/opt/xla/lib/go-xla/nvidia/nccl/lib:/opt/xla/lib/go-xla/nvidia/nvshmem/lib \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
WORKDIR /work
USER 65532:65532
ENTRYPOINT ["/usr/local/bin/dreamguard"]

FROM gcr.io/distroless/static-debian12:nonroot AS static
COPY --from=build-cpu /src/bin/dreamguard /usr/local/bin/dreamguard
COPY LICENSE NOTICE* /usr/share/doc/dreamguard/
WORKDIR /work
ENTRYPOINT ["/usr/local/bin/dreamguard"]

# The service. Its container is reached from others: it wants tokens, and TLS or
# --allow-insecure where something in front has it. With TLS, override the check.
FROM static AS serve
EXPOSE 8787
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s CMD ["/usr/local/bin/dreamguard", "serve", "health"]
ENTRYPOINT ["/usr/local/bin/dreamguard", "serve", "--listen", "0.0.0.0:8787"]
CMD ["--help"]

# Last, so that it is what `docker build .` makes.
FROM static AS cpu
