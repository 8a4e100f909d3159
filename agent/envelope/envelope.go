// Package envelope converts requests and answers of an agent.Router for surfaces that carry JSON objects in place of
// HTTP headers: MCP (package toolserver), A2A (a2aserver) and the orchestrator's protocol for remote agents
// (remoteserver). All of them give the same answers, signed over the same bytes.
//
// A surface reads an Order and a payment, fills in an agent.Request, and calls Do. The Answer has a Body, which is the
// output, a demand of x402, or a problem, and the Signature over it. Refused is the answer to a request that could not
// be read, Recall the one to a task that was paid for earlier, perhaps in another process. Every answer is signed,
// whatever became of the request.
package envelope

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/agent"
	"repute/agent/signed"
	"repute/internal/httpapi"
	"repute/x402"
)

// Signature has the members of a signed answer. Each is what the HTTP header of its name holds.
// All members are signed but Version: a client verifies them with signed.ReadResponse of Headers, as it does the
// headers of HTTP.
type Signature struct {
	AgentID    string        `json:"agentId"`  // X-Agent-ID
	Registry   string        `json:"registry"` // X-Agent-Registry
	Version    string        `json:"version"`  // X-Agent-Version
	TaskHash   string        `json:"taskHash"`
	ResultHash string        `json:"resultHash"`
	Timestamp  uint64        `json:"timestamp"` // seconds since 1970
	Metadata   string        `json:"metadata"`
	Signature  hexutil.Bytes `json:"signature"`
}

// Headers returns the signature as HTTP headers, for signed.ReadResponse.
func (s *Signature) Headers() http.Header {
	h := http.Header{}
	for name, value := range map[string]string{signed.HeaderAgentID: s.AgentID, signed.HeaderRegistry: s.Registry,
		signed.HeaderVersion: s.Version, signed.HeaderTaskHash: s.TaskHash, signed.HeaderResultHash: s.ResultHash,
		signed.HeaderTimestamp: fmt.Sprint(s.Timestamp), signed.HeaderMetadata: s.Metadata,
		signed.HeaderSignature: s.Signature.String()} {
		h.Set(name, value)
	}
	return h
}

// Answer is a router's answer without a transport.
type Answer struct {
	*agent.Response
	// Body is the output, the demand of a payment (x402 version 2), or a problem with the members of
	// RFC 9457 and error and message. The signature is over its canonical JSON.
	Body      json.RawMessage
	Signature Signature
}

// Do asks a router and signs its answer.
//
// The error is a fault of the agent, such as a key that cannot sign; whatever the request did wrong is in the Answer.
func Do(ctx context.Context, r *agent.Router, q agent.Request) (*Answer, error) {
	return answerOf(ctx, r, r.Do(ctx, q), q.Capability)
}

// Recall returns the stored answer to the paid request of a task. repute.ErrNotFound where there is none.
func Recall(ctx context.Context, r *agent.Router, task string) (*agent.Recalled, *Answer, error) {
	stored, err := r.Recall(ctx, task)
	if err != nil {
		return nil, nil, err
	}
	a, err := answerOf(ctx, r, stored.Response, stored.Capability)
	return stored, a, err
}

// answerOf signs what a router answered, about a capability or "" for none.
//
// An answer that the database has is signed already (Signed), and MUST NOT be signed again: a second signature would
// have another time, and a replay would differ from its first answer. An answer is signed also where its client has
// gone.
func answerOf(ctx context.Context, r *agent.Router, out *agent.Response, capability string) (*Answer, error) {
	a := &Answer{Response: out, Body: out.Output}
	if out.Problem != nil {
		body, err := problemBody(out)
		if err != nil {
			return nil, err
		}
		a.Body = body
	}
	s := out.Signed
	if s == nil {
		var err error
		metadata := out.Metadata(r.Service(capability))
		if s, err = r.Sign(context.WithoutCancel(ctx), out.TaskHash, a.Body, metadata); err != nil {
			return nil, err
		}
	}
	a.Signature = signatureOf(s, r.Version())
	return a, nil
}

// signatureOf is a signed answer as members of an object.
func signatureOf(s *signed.Response, version string) Signature {
	return Signature{AgentID: s.AgentID.Dec(), Version: version, TaskHash: s.TaskHash.Hex(),
		Registry:   fmt.Sprintf("eip155:%d:%s", s.Domain.ChainID, s.Domain.Registry.Hex()),
		ResultHash: s.ResultHash.Hex(), Timestamp: s.Timestamp, Metadata: s.Metadata, Signature: s.Signature}
}

// problemBody is the body of an answer that is no success.
//
// A demand is x402's own form, without the members of RFC 9457, as clients of x402 read it. Its failed settlement is
// a member for surfaces that have no header for it.
func problemBody(out *agent.Response) (json.RawMessage, error) {
	p := out.Problem
	if p.Demand != nil {
		d := struct {
			x402.PaymentRequired
			Failed *x402.Settlement `json:"x402/payment-response,omitempty"`
		}{p.Demand.Required(), nil}
		if s := out.Settlement; s != nil && !s.Success {
			d.Failed = s
		}
		return json.Marshal(d)
	}
	b := httpapi.NewError(p.Status, p.Code, http.StatusText(p.Status), httpapi.Clean(p.Message))
	b.Hint, b.RequestID = httpapi.Clean(p.Hint), out.RequestID
	return json.Marshal(struct {
		*httpapi.ErrorBody
		Error   string  `json:"error"`
		Message string  `json:"message"`
		Retry   float64 `json:"retryAfter,omitempty"` // seconds
	}{b, p.Code, b.Detail, p.Retry.Seconds()})
}

// Refused is the answer to a request that does not reach the router.
//
// Only errors that are about the request are shown: an *repute.InputError and an *x402.Refusal. Any other error
// becomes the text "the request is malformed", and goes into Problem.Cause for the log.
func Refused(ctx context.Context, r *agent.Router, err error) (*Answer, error) {
	p := &agent.Problem{Status: http.StatusBadRequest, Code: "invalid", Message: "the request is malformed", Cause: err}
	var input *repute.InputError
	var refused *x402.Refusal
	switch {
	case errors.As(err, &input):
		p.Message, p.Hint = input.Field+": "+input.Reason, input.Hint
	case errors.As(err, &refused):
		p.Message = "payment: " + refused.Error()
	}
	return answerOf(ctx, r, &agent.Response{Status: p.Status, Problem: p, Mode: agent.Normal}, "")
}

// ReadPayment reads a payment by x402; nil for none. The error is an *x402.Refusal.
// The value is encoded and decoded again, so that one decoder judges payments of all surfaces.
func ReadPayment(v any) (*x402.Payment, error) {
	if v == nil {
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, &x402.Refusal{Reason: x402.ReasonInvalidPayload, Message: "no JSON object"}
	}
	var p x402.Payment
	if err := json.Unmarshal(raw, &p); err != nil {
		var refused *x402.Refusal
		if errors.As(err, &refused) {
			return nil, refused
		}
		return nil, &x402.Refusal{Reason: x402.ReasonInvalidPayload, Message: "no payment of x402"}
	}
	return &p, nil
}

// Headers reads an object of texts as HTTP headers, for transports that have none.
// Members that are no texts are left out, and a value that is no object gives none.
func Headers(v any) http.Header {
	h := http.Header{}
	members, _ := v.(map[string]any)
	for name, value := range members {
		if text, ok := value.(string); ok {
			h.Set(name, text)
		}
	}
	return h
}

// Order is what a request says in one object: a capability, its input and a payment.
type Order struct {
	Capability string          `json:"capability"`
	Input      json.RawMessage `json:"input"`
	Payment    *x402.Payment   `json:"payment"`
}

// ReadOrder reads {capability, input, payment}, of which capability and payment may be missing. Every
// other value is the input itself. Without a capability it is the named one, or the agent's only one.
//
// It decides by the members alone: an input that happens to have only members of an order is taken for one. names are
// tried in their order, and one that is no capability is passed over, since tags and skills of other meanings may be
// among them. The error is repute.ErrInvalid, or an *x402.Refusal for a payment that cannot be read.
func ReadOrder(r *agent.Router, raw json.RawMessage, names ...string) (o Order, err error) {
	var members map[string]json.RawMessage
	wrapped := json.Unmarshal(raw, &members) == nil && members["input"] != nil
	for name := range members {
		wrapped = wrapped && (name == "capability" || name == "input" || name == "payment")
	}
	if !wrapped {
		o.Input = raw
	} else if err := json.Unmarshal(raw, &o); err != nil {
		var refused *x402.Refusal
		if errors.As(err, &refused) {
			return o, refused
		}
		return o, repute.Invalid("capability", "is no text", "the name of a capability")
	}
	known := r.Names()
	for _, name := range names {
		if o.Capability == "" && r.Service(name) != nil {
			o.Capability = name
		}
	}
	if o.Capability == "" && len(known) == 1 {
		o.Capability = known[0]
	}
	if o.Capability == "" {
		return o, repute.Invalid("capability", "is not named",
			"{capability, input} with one of "+strings.Join(known, ", "))
	}
	return o, nil
}

// Pricing is what a capability costs, for lists; nil for a free one.
func Pricing(s *agent.Service) map[string]any {
	if s.Price == nil {
		return nil
	}
	return map[string]any{"amount": s.Price.Amount, "currency": s.Price.Currency}
}
