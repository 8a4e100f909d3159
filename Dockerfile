# Builds a static binary; Postgres and Redis run beside it (docker-compose.yml).
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=dev
RUN CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X repute/cmd/repute/internal/config.Version=${VERSION}" -o /repute ./cmd/repute

FROM gcr.io/distroless/static-debian12:nonroot
COPY --from=build /repute /repute
EXPOSE 8080
ENV REPUTE_LISTEN=0.0.0.0:8080
ENTRYPOINT ["/repute"]
CMD ["serve"]
