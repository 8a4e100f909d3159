package handler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	"go.opentelemetry.io/otel/propagation"

	"repute"
	"repute/agent/capability"
)

// Doer sends HTTP requests. It decides what may be reached and MUST check redirects the same way:
// resolver.Guard gives one that refuses internal addresses.
type Doer interface {
	Do(*http.Request) (*http.Response, error)
}

// HTTP posts a call to a URL as JSON (capability.Call.MarshalJSON) and returns the body of the answer.
type HTTP struct {
	URL       string
	Client    Doer
	Header    http.Header // added to each request, such as a token
	MaxAnswer int64       // 10 MiB when 0
	Log       *slog.Logger
}

// maxRefusal bounds what of a refusal is logged, in bytes.
const maxRefusal = 4096

// Run implements agent.Handler. Status 2xx is an answer; 408 and 504 are ErrTimeout; 429, 502 and 503, and
// a server that cannot be reached, are repute.ErrUnavailable; all others are ErrFailed.
func (h *HTTP) Run(ctx context.Context, call capability.Call) (json.RawMessage, error) {
	req, err := h.request(ctx, call)
	if err != nil {
		return nil, err
	}
	resp, err := h.Client.Do(req)
	if err != nil {
		logger(h.Log).WarnContext(ctx, "handler not reached", "capability", call.Capability,
			"error", withoutURL(err))
		return nil, handlerError(ctx, fmt.Errorf("%w: the handler cannot be reached", repute.ErrUnavailable))
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, h.refused(ctx, call, resp)
	}
	most := cmp.Or(h.MaxAnswer, defaultMaxAnswer)
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	switch {
	case err != nil:
		logger(h.Log).WarnContext(ctx, "handler's answer broke off", "capability", call.Capability, "error", err)
		return nil, handlerError(ctx, fmt.Errorf("%w: the handler's answer broke off", repute.ErrUnavailable))
	case int64(len(body)) > most:
		return nil, fmt.Errorf("%w: its answer has more than %d bytes", ErrFailed, most)
	}
	return checked(body)
}

// withoutURL returns the error of a request for the log, without its URL: the path or the query can be a secret.
func withoutURL(err error) error {
	var told *url.Error
	if errors.As(err, &told) {
		return told.Err
	}
	return err
}

// request makes the request of a call.
func (h *HTTP) request(ctx context.Context, call capability.Call) (*http.Request, error) {
	body, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("%w: the call is no JSON", ErrFailed)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%w: the handler's URL is malformed", repute.ErrUnavailable)
	}
	for name, values := range h.Header {
		req.Header[http.CanonicalHeaderKey(name)] = values
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Idempotency-Key", call.RequestID)
	correlate(ctx, req.Header, call)
	return req, nil
}

// correlate adds the id of the request for logs, and the trace (W3C Trace Context).
func correlate(ctx context.Context, h http.Header, call capability.Call) {
	if call.Correlation != "" {
		h.Set(headerRequestID, call.Correlation)
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
}

// headerRequestID names a request in logs.
const headerRequestID = "X-Request-Id"

// refused logs what a server said and returns the kind of its status.
func (h *HTTP) refused(ctx context.Context, call capability.Call, resp *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // for the log, as far as it is readable
	logger(h.Log).WarnContext(ctx, "handler refused", "capability", call.Capability, "status", resp.StatusCode,
		"body", string(text))
	switch resp.StatusCode {
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return ErrTimeout
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable:
		return fmt.Errorf("%w: the handler has no capacity now", repute.ErrUnavailable)
	}
	return handlerError(ctx, fmt.Errorf("%w: it answered with status %d", ErrFailed, resp.StatusCode))
}
