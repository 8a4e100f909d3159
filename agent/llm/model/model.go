// Package model asks language models through the official clients of their providers: Anthropic's Messages API,
// OpenAI's Chat Completions (which many servers speak) and Google's Gemini API. New returns an llm.Model for an entry
// of the operator's table.
//
// Each client converts a request to its provider's form, streams the answer, and converts it back. All share the rest:
// answers are bounded on the wire and as a whole, redirects are not followed because they would carry the key to
// another host, and failures become repute.ErrUnavailable (try later) or repute.ErrInvalid (do not).
//
// The usage of a turn is what counts against budgets, also of a turn that failed. Providers are not trusted to report
// it: one that reports nothing is charged by the estimate, and one that reports less than its answer has by the length
// of the answer.
//
// Nothing is read from the environment but the key that the configuration names: the clients' own variables have no
// effect, so that an operator sees in one file where prompts go.
package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"repute"
	"repute/agent/llm"
	"repute/agent/llm/modelfile"
)

const (
	// maxRetries is how often a client repeats a refused request before anything was answered: the budget
	// has reserved the call once.
	maxRetries = 2
	// maxBody bounds one answer on the wire, in bytes.
	maxBody = 8 << 20
	// headerTimeout bounds the wait for the beginning of an answer.
	headerTimeout = 2 * time.Minute
	// maxReply bounds text and tool inputs of one answer, in bytes.
	maxReply = 1 << 20
)

// New returns the client of a model. repute.ErrInvalid: its key cannot be read.
func New(ctx context.Context, e modelfile.Entry, getenv func(string) string) (llm.Model, error) {
	key, err := e.Secret(getenv)
	if err != nil {
		return nil, err
	}
	hc := client()
	var m llm.Model
	switch e.Provider {
	case modelfile.Anthropic:
		m = newAnthropic(e, key, hc)
	case modelfile.OpenAI:
		m = newOpenAI(e, key, hc)
	case modelfile.Google:
		m, err = newGoogle(ctx, e, key, hc)
	default:
		return nil, repute.Invalid("provider", fmt.Sprintf("%.40q has no client", e.Provider),
			"anthropic, openai, google")
	}
	return m, err
}

// client returns an HTTP client that bounds answers and follows no redirects (see the package comment).
func client() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own type
	t.ResponseHeaderTimeout = headerTimeout
	return &http.Client{Transport: &bounded{next: t}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// bounded ends answers that are too long.
// It wraps the transport and not the client, so that no client of a provider can read around it.
type bounded struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (b *bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := b.next.RoundTrip(r)
	if err == nil {
		resp.Body = &body{resp.Body, maxBody}
	}
	return resp, err
}

// body is a body that fails beyond its bound.
type body struct {
	io.ReadCloser
	left int64
}

// errTooLong is returned by a body beyond maxBody. It is permanent: the same request would get as long an answer again,
// so that failed makes it repute.ErrInvalid.
var errTooLong = errors.New("the model's answer is too long")

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= int64(n); b.left < 0 {
		return 0, errTooLong
	}
	return n, err
}

// failed is the error of a request. status is 0 where no server answered; text is the server's own words.
//
// The order matters: an ended context explains every other error, and a bound that was hit explains a broken stream.
// The server's words are cut.
func failed(ctx context.Context, status int, text string, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errTooLong):
		return fmt.Errorf("%w: at most %d bytes: %w", errTooLong, maxBody, repute.ErrInvalid)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("the provider refuses for now (429): %.300s: %w", text, repute.ErrUnavailable)
	case status == http.StatusRequestTimeout, status >= 500:
		return fmt.Errorf("the provider failed (%d): %.300s: %w", status, text, repute.ErrUnavailable)
	case status != 0 && status/100 != 2:
		return fmt.Errorf("the provider refused the request (%d): %.300s: %w", status, text, repute.ErrInvalid)
	}
	return fmt.Errorf("the answer broke off, or is malformed: %.300s: %w", err.Error(), repute.ErrUnavailable)
}

// errCut is the error of a stream that ended before the model did.
var errCut = errors.New("the stream ended early")

// tooMuch refuses an answer whose parts are together too long to be stored.
func tooMuch(r *llm.Reply) error {
	size := len(r.Text)
	for _, c := range r.Calls {
		size += len(c.Input) + len(c.Name) + len(c.ID) + len(c.Signature)
	}
	if size > maxReply {
		return fmt.Errorf("the model's answer has %d bytes, at most %d are taken: %w", size, maxReply,
			repute.ErrInvalid)
	}
	return nil
}

// whole returns the reply of a turn that ended well, with the usage that counts.
func whole(r *llm.Request, got *llm.Reply) (llm.Reply, error) {
	got.Usage = used(r, got)
	return *got, tooMuch(got)
}

// broken returns the reply of a turn that failed, which has only its usage, and the error of failed. A request that a
// status refused before any answer, or that reached no server, used nothing.
//
// A request whose connection was never made used nothing, and neither did one that was refused with a status before
// any part of the answer. In every other case the provider may have charged for it.
func broken(ctx context.Context, r *llm.Request, got *llm.Reply, status int, text string,
	err error) (llm.Reply, error) {
	var dial *net.OpError
	unasked := status != 0 && status/100 != 2 || errors.As(err, &dial) && dial.Op == "dial"
	if unasked && written(got) == 0 && got.Usage == (llm.Usage{}) {
		return llm.Reply{}, failed(ctx, status, text, err)
	}
	return llm.Reply{Usage: used(r, got)}, failed(ctx, status, text, err)
}

// Sizes of a token in an answer, in bytes: what it usually has at least, and what it hardly ever exceeds.
const (
	usualToken   = 3
	longestToken = 8
)

// used is the usage of a turn that counts against budgets. What a provider reports is no reason to count less than
// nothing. One that reports no input or no output is charged by the estimate, and one that reports less output than its
// answer can have, as it does at the beginning of an answer that is cut then, by the longest tokens.
func used(r *llm.Request, got *llm.Reply) llm.Usage {
	size := int64(written(got))
	u := llm.Usage{Input: tokensOf(got.Usage.Input), Output: max(tokensOf(got.Usage.Output), size/longestToken)}
	if u.Input == 0 {
		u.Input = r.Estimate().Input
	}
	if tokensOf(got.Usage.Output) == 0 {
		u.Output = size / usualToken
	}
	return u
}

// maxReported bounds each number of tokens that a provider reports, so that no sum overflows.
const maxReported = 1 << 40

// tokensOf adds parts of a reported usage, each at least 0.
// Each part is bounded on its own: a provider that reports a negative number or a huge one MUST NOT move the sum of a
// budget backwards.
func tokensOf(parts ...int64) (n int64) {
	for _, p := range parts {
		n += min(max(p, 0), maxReported)
	}
	return n
}

// written is the size of an answer's text and inputs, in bytes.
func written(got *llm.Reply) int {
	n := len(got.Text)
	for _, c := range got.Calls {
		n += len(c.Input)
	}
	return n
}

// say passes a part of the text on.
func say(to func(string), text string) {
	if to != nil && text != "" {
		to(text)
	}
}

// tokens is what an answer may have by the request and by the table.
// The table's number is the model's own limit, which a request may lower and not raise.
func tokens(r *llm.Request, e *modelfile.Entry) int64 {
	if e.MaxTokens == 0 {
		return r.MaxTokens
	}
	return min(cmp.Or(r.MaxTokens, e.MaxTokens), e.MaxTokens)
}

// schemaOf returns the schema of a tool as an object.
func schemaOf(t *llm.ToolDef) (schema map[string]any, err error) {
	if err := json.Unmarshal(t.Schema, &schema); err != nil {
		return nil, repute.Invalid("tools."+t.Name, "has a schema that is no object", "JSON Schema")
	}
	return schema, nil
}
