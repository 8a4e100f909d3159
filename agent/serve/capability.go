package serve

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"

	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"

	"repute/agent"
	"repute/agent/signed"
	"repute/internal/httpapi"
	"repute/x402"
)

// headerMode marks answers of an agent that does not work normally, headerValidation those whose
// result a validator must confirm by the agent's policy, and headerValidationRequest names the request
// to the validator on the chain.
const (
	headerMode              = "X-Agent-Mode"
	headerValidation        = "X-Agent-Validation"
	headerValidationRequest = "X-Agent-Validation-Request"
)

// capability runs a capability.
func (s *surface) capability(c echo.Context) error {
	r := c.Request()
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != jsonType {
		return httpapi.NewError(http.StatusUnsupportedMediaType, "invalid", "Unsupported media type",
			"Content-Type: application/json is needed")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return httpapi.NewError(http.StatusBadRequest, "invalid", "Invalid request", "the request body cannot be read")
	}
	q := agent.Request{Capability: c.Param("name"), Input: body, Resource: s.base(r) + "/capability/" + c.Param("name"),
		Caller: httpapi.CallerOf(r.Context()), Correlation: httpapi.RequestID(r.Context())}
	if one := s.router.Service(q.Capability); one != nil {
		q.Resource = s.base(r) + "/capability/" + one.Definition().Name
	}
	if err := readPayment(r.Header, &q); err != nil {
		return err
	}
	return s.respond(c, s.router.Do(r.Context(), q))
}

// readPayment reads the payment of a request: the first of the three headers that is there. A wrong
// one is no payment of another kind.
func readPayment(h http.Header, q *agent.Request) error {
	p, err := x402.PaymentOf(h)
	var refused *x402.Refusal
	switch {
	case err == nil:
		q.Payment = &p
	case errors.As(err, &refused):
		return httpapi.NewError(http.StatusBadRequest, "invalid", "Invalid request",
			httpapi.Clean("payment: "+refused.Error()))
	}
	return q.Identify(h)
}

// respond writes the answer of the router.
func (s *surface) respond(c echo.Context, out *agent.Response) error {
	note := noteOf(c.Request().Context())
	note.task, note.metadata = out.TaskHash, out.Metadata(s.router.Service(c.Param("name")))
	h := c.Response().Header()
	if out.Mode != agent.Normal {
		h.Set(headerMode, string(out.Mode))
	}
	if out.Validation {
		h.Set(headerValidation, "required")
	}
	if (out.ValidationRequest != common.Hash{}) {
		h.Set(headerValidationRequest, out.ValidationRequest.Hex())
	}
	h.Set("Cache-Control", "no-store")
	if err := out.WriteSettlement(h); err != nil {
		return err
	}
	if p := out.Problem; p != nil {
		if p.Demand != nil {
			return p.Demand.WriteStatus(c.Response(), p.Status)
		}
		b := bodyOf(p)
		b.RequestID = out.RequestID
		b.Write(c.Response())
		return nil
	}
	note.signed = out.Signed
	return c.Blob(out.Status, jsonType, out.Output)
}

// bodyOf is the body of a router's problem.
func bodyOf(p *agent.Problem) *httpapi.ErrorBody {
	b := httpapi.NewError(p.Status, p.Code, http.StatusText(p.Status), p.Message)
	b.Hint, b.Retry = p.Hint, p.Retry
	return b
}

// note is what the handler of a request knows for the signature of its answer.
type note struct {
	task     common.Hash
	metadata string
	signed   *signed.Response // of the body; nil where it is to be signed
}

// noteKey is the context key of a note.
type noteKey struct{}

// noteOf is the note of a request that goes through signing.
func noteOf(ctx context.Context) *note {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		return n
	}
	return &note{}
}
