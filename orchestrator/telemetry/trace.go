package telemetry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"repute"
	"repute/orchestrator/journal"
)

// Trace makes one trace of each root run, with a span of each run, phase and call. The
// trace's id follows from the run's, so that whatever processes work on a run add to the
// same trace.
type Trace struct{ tracer trace.Tracer }

// NewTrace makes a trace of a provider's tracer. The span of a run as a whole hangs together
// with those below it where the provider uses TraceIDs.
func NewTrace(p trace.TracerProvider) *Trace { return &Trace{p.Tracer("repute/orchestrator")} }

// Start begins a span; end closes it. A nil Trace does nothing.
func (t *Trace) Start(ctx context.Context, name string, about ...attribute.KeyValue) (context.Context, func(error)) {
	if t == nil {
		return ctx, func(error) {}
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithAttributes(about...))
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, journal.Shorten(err.Error()))
		}
		span.End()
	}
}

// spanOf is the span of a root run's attempt.
func spanOf(r *repute.Run) trace.SpanContext {
	id := sha256.Sum256([]byte("run " + r.Root))
	span := sha256.Sum256(fmt.Appendf(nil, "run %s attempt %d", r.Root, r.Attempt))
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID(id[:16]), SpanID: trace.SpanID(span[:8]),
		TraceFlags: trace.FlagsSampled, Remote: true})
}

// Join puts the spans that follow below a root run's span, even if another process sends that span.
func (t *Trace) Join(ctx context.Context, r *repute.Run) context.Context {
	if t == nil {
		return ctx
	}
	return trace.ContextWithSpanContext(ctx, spanOf(r))
}

// Ended sends the span of a root run that is over.
func (t *Trace) Ended(r *repute.Run) {
	if t == nil {
		return
	}
	ctx := context.WithValue(context.Background(), spanKey{}, spanOf(r))
	began := r.Started
	if began.IsZero() {
		began = time.Now()
	}
	_, span := t.tracer.Start(ctx, "run", trace.WithNewRoot(), trace.WithTimestamp(began),
		trace.WithAttributes(append(AboutRun(r), attribute.String("status", string(r.Status)))...))
	if r.Error != "" {
		span.SetStatus(codes.Error, journal.Shorten(r.Error))
	}
	span.End()
}

// AboutRun returns the attributes that every span of a run has.
func AboutRun(r *repute.Run) []attribute.KeyValue {
	return []attribute.KeyValue{attribute.String("run", r.ID), attribute.String("task", r.Task),
		attribute.String("agent", r.Agent), attribute.Int("attempt", r.Attempt)}
}

// spanKey is the context key of the span that TraceIDs gives its name.
type spanKey struct{}

// TraceIDs names the spans of runs after the runs, and others at random. Give it to the SDK
// as generator of ids.
type TraceIDs struct{}

// NewIDs names the first span of a trace.
func (TraceIDs) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	if wanted, ok := ctx.Value(spanKey{}).(trace.SpanContext); ok {
		return wanted.TraceID(), wanted.SpanID()
	}
	fill(id[:])
	fill(span[:])
	return id, span
}

// NewSpanID names a further span.
func (TraceIDs) NewSpanID(context.Context, trace.TraceID) (span trace.SpanID) {
	fill(span[:])
	return span
}

// fill makes an id, which must not be zero.
func fill(id []byte) {
	_, _ = rand.Read(id) // never fails
	id[0] |= 1
}
