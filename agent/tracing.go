package agent

import (
	"context"
	"fmt"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Names of spans: a request has one, with a child for each step that it reaches (sections 7.3 and 13).
const (
	spanRequest = "capability"
	spanInput   = "input"
	spanPolicy  = "policy"
	spanPayment = "payment"
	spanSettle  = "settle"
	spanHandler = "handler"
	spanOutput  = "output"
	spanSign    = "sign"
	spanRecord  = "record"
)

// traced does a step of a request in a span of its own.
func (w *work) traced(ctx context.Context, name string, do func(context.Context) error) error {
	ctx, span := w.router.o.Tracer.Start(ctx, name)
	err := do(ctx)
	closeSpan(span, err)
	return err
}

// closeSpan ends a span with what came of it. What a client did wrong is no failure of the agent.
func closeSpan(span trace.Span, err error) {
	defer span.End()
	if err == nil {
		return
	}
	status := problemOf(err).Status
	span.SetAttributes(attribute.Int("status", status))
	if status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, fmt.Sprintf("%.500s", err.Error()))
	}
}

// begin starts the span of a request.
func (w *work) begin(ctx context.Context) (context.Context, trace.Span) {
	return w.router.o.Tracer.Start(ctx, spanRequest, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
		attribute.String("agent", w.router.o.ID.String()), attribute.String("requestId", w.request.ID),
		attribute.String("correlationId", w.request.Correlation)))
}

// conclude says in the span of a request how it was answered. The capability is one of the agent's: what
// a client made up would be a new name for each request.
func (w *work) conclude(span trace.Span, capability string) {
	r := w.response
	span.SetAttributes(attribute.String("capability", capability), attribute.Int("status", r.Status),
		attribute.String("mode", string(r.Mode)), attribute.Bool("paid", w.row != nil),
		attribute.Bool("replayed", r.Replayed))
	if r.Status >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, http.StatusText(r.Status))
	}
}
