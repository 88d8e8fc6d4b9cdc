# syntax=docker/dockerfile:1
# Three images from one file:
#
#   docker build --target api     -t perdure-api .
#   docker build --target worker  -t perdure-worker .
#   docker build --target perdure -t perdure .         perdure dev: everything in one process
#
# Each image has one static binary and certificates: no shell, no package manager, no root.

FROM --platform=$BUILDPLATFORM golang:1.26.8 AS source
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS TARGETARCH
ENV CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH GOFLAGS=-trimpath

# One stage per binary, so that the image of the API does not compile the embedded Temporal server.
FROM source AS build-api
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -o /out/api ./cmd/api

FROM source AS build-worker
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -o /out/worker ./cmd/worker

FROM source AS build-perdure
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    go build -o /out/perdure ./cmd/perdure && mkdir /out/data

FROM gcr.io/distroless/static-debian12:nonroot AS base

FROM base AS api
COPY --from=build-api /out/api /usr/local/bin/api
# Listen on all addresses: published ports decide what is reachable.
ENV PERDURE_ADDR=0.0.0.0:8080
EXPOSE 8080
HEALTHCHECK --interval=5s --timeout=3s --start-period=60s CMD ["/usr/local/bin/api", "probe"]
ENTRYPOINT ["/usr/local/bin/api"]

FROM base AS worker
COPY --from=build-worker /out/worker /usr/local/bin/worker
ENTRYPOINT ["/usr/local/bin/worker"]

FROM base AS perdure
COPY --from=build-perdure /out/perdure /usr/local/bin/perdure
COPY --from=build-perdure --chown=nonroot:nonroot /out/data /data
COPY agents/*.yaml /etc/perdure/agents/
VOLUME /data
EXPOSE 8080
# It starts with a mode of authentication, such as -e PERDURE_AUTH=apikey, or, for a trial whose port is published on
# loopback only, with -e PERDURE_AUTH_ALLOW_ANONYMOUS=true.
ENTRYPOINT ["/usr/local/bin/perdure"]
CMD ["dev", "--addr", "0.0.0.0:8080", "--data", "/data", "--agents", "/etc/perdure/agents"]
