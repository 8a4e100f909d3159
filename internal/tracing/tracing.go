// Package tracing sends spans to a collector by OTLP over HTTP, as the standard environment variables of OpenTelemetry
// say. Without one of them nothing is traced and nothing is sent. While the collector is unavailable, spans are lost
// and no request fails.
package tracing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

// Open makes a provider of tracers where OTEL_EXPORTER_OTLP_ENDPOINT or
// OTEL_EXPORTER_OTLP_TRACES_ENDPOINT names a collector, and nil where neither does or
// OTEL_SDK_DISABLED is true. ids may name spans; nil: at random. The collector is not asked
// yet: while it is unavailable, spans are lost, which is logged once a minute at most and holds nothing up. The caller
// shuts the provider down, which sends what is left.
func Open(ctx context.Context, version string, ids trace.IDGenerator, log *slog.Logger) (*trace.TracerProvider, error) {
	if cmp.Or(os.Getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT")) == "" ||
		os.Getenv("OTEL_SDK_DISABLED") == "true" {
		return nil, nil
	}
	otel.SetErrorHandler(&complaints{log: log}) // it would write past the log
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.Merge(resource.NewSchemaless(attribute.String("service.name", "repute"),
		attribute.String("service.version", version)), resource.Environment())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	options := []trace.TracerProviderOption{trace.WithBatcher(exporter), trace.WithResource(about)}
	if ids != nil {
		options = append(options, trace.WithIDGenerator(ids))
	}
	return trace.NewTracerProvider(options...), nil
}

// complaints logs errors of the exporter, at most one a minute.
type complaints struct {
	log  *slog.Logger
	next atomic.Int64 // Unix nanoseconds before which nothing is logged
}

// Handle implements otel.ErrorHandler. It logs an error of the exporter, at most one a minute.
func (c *complaints) Handle(err error) {
	now := time.Now()
	if next := c.next.Load(); now.UnixNano() >= next && c.next.CompareAndSwap(next, now.Add(time.Minute).UnixNano()) {
		c.log.Warn("traces are lost: the collector does not take them", "error", err)
	}
}
