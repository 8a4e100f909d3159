package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"go.opentelemetry.io/otel/trace"

	"repute/agent/signed"
	"repute/store/agentdb"
	"repute/x402"
)

// answer is what is stored of the answer to a paid request, without its output.
type answer struct {
	Status     int           `json:"status"`
	Problem    *Problem      `json:"problem,omitempty"`
	ResultHash common.Hash   `json:"resultHash,omitzero"`
	Timestamp  uint64        `json:"timestamp,omitempty"`
	Metadata   string        `json:"metadata,omitempty"`
	Signature  hexutil.Bytes `json:"signature,omitempty"`
	Validation common.Hash   `json:"validation,omitzero"`
}

// answerOf is what is stored of a signed response. Its output is stored with the payment.
func answerOf(r *Response) *answer {
	s := r.Signed
	return &answer{Status: r.Status, ResultHash: s.ResultHash, Timestamp: s.Timestamp, Metadata: s.Metadata,
		Signature: s.Signature, Validation: r.ValidationRequest}
}

// replay gives the stored answer of a payment whose work is done.
func (w *work) replay() error {
	w.response.Replayed = true
	if err := w.settled(); err != nil {
		return err
	}
	var a answer
	if err := json.Unmarshal(w.row.Answer, &a); err != nil {
		return fmt.Errorf("stored answer: %w", err)
	}
	w.response.RequestID = w.row.RequestID
	if a.Problem != nil {
		return a.Problem
	}
	w.output, w.response.Status, w.response.ValidationRequest = w.row.Output, a.Status, a.Validation
	w.response.Signed = &signed.Response{TaskResponse: signed.TaskResponse{AgentID: w.router.o.ID.TokenID,
		TaskHash: w.row.TaskHash, ResultHash: a.ResultHash, Timestamp: a.Timestamp, Metadata: a.Metadata},
		Domain: signed.DomainOf(w.router.o.ID), Signature: a.Signature}
	return nil
}

// metadata is what an agent signs of an answer beside its hashes, as JSON.
type metadata struct {
	Capability  string             `json:"capability,omitempty"`
	Version     string             `json:"version,omitempty"`
	RequestID   string             `json:"requestId,omitempty"`
	Status      int                `json:"status"`
	Settlement  agentdb.Settlement `json:"settlement,omitempty"`
	Transaction string             `json:"transaction,omitempty"`
	Validation  common.Hash        `json:"validationRequest,omitzero"`
}

// Metadata is what is signed of a response with a status, beside its hashes.
func (r *Response) Metadata(s *Service) string {
	m := metadata{RequestID: r.RequestID, Status: r.Status, Validation: r.ValidationRequest}
	if s != nil {
		m.Capability, m.Version = s.Definition().Name, s.Definition().Version
	}
	if r.Settlement != nil {
		m.Settlement, m.Transaction = agentdb.X402, r.Settlement.Transaction
	}
	raw, _ := json.Marshal(m) // texts and numbers are JSON
	return string(raw)
}

// sign is step 6.
func (w *work) sign(ctx context.Context) (err error) {
	ctx, span := w.router.o.Tracer.Start(ctx, spanSign)
	defer func() { closeSpan(span, err) }()
	if err = w.validate(); err != nil {
		return err
	}
	w.response.Signed, err = w.router.Sign(ctx, w.response.TaskHash, w.output, w.response.Metadata(w.service))
	return err
}

// entry is the line of the log about an execution, step 7.
func (w *work) entry() agentdb.Entry {
	e := agentdb.Entry{Kind: agentdb.Execution, Agent: w.router.o.ID.String(), RequestID: w.request.ID,
		Capability: w.service.Definition().Name, Client: w.client, TaskHash: w.response.TaskHash,
		Outcome: strconv.Itoa(w.response.Status), ClientSignature: w.proof}
	detail := executed{time.Since(w.began).Milliseconds(), w.response.ValidationRequest, w.document,
		w.request.Task}
	e.Detail, _ = json.Marshal(detail) // texts and numbers are JSON
	if s := w.response.Signed; s != nil {
		e.ResultHash, e.AgentSignature = s.ResultHash, s.Signature
	}
	if w.row == nil {
		return e
	}
	e.RequestID = w.row.RequestID
	if s := w.response.Settlement; s != nil {
		e.Settlement, e.TxHash = agentdb.X402, common.HexToHash(s.Transaction)
	}
	if w.response.Settlement != nil || w.row.Settlement == agentdb.NoSettlement {
		e.Amount, e.Decimals, e.Currency = w.amount, w.terms.Decimals, w.terms.Currency
	}
	return e
}

// record stores a decision or a payment's verification, and logs it. A decision that allows is stored
// with the next entry of the request, in one transaction.
func (w *work) record(ctx context.Context, kind agentdb.Kind, outcome string, detail map[string]any) error {
	e, err := w.logged(ctx, kind, outcome, detail)
	if err != nil {
		return err
	}
	w.log = append(w.log, e)
	if kind == agentdb.Decision && outcome == allowed {
		return nil
	}
	return w.append(ctx)
}

// logged logs a decision or a payment's verification, and returns its entry.
func (w *work) logged(ctx context.Context, kind agentdb.Kind, outcome string, detail map[string]any) (e agentdb.Entry,
	err error) {
	raw, err := json.Marshal(detail)
	if err != nil {
		return e, fmt.Errorf("log: %w", err)
	}
	if detail == nil {
		raw = nil
	}
	var client common.Address
	var proof []byte
	if w.proved { // others could fill the log with long signatures, in the name of anybody
		client, proof = w.client, w.proof
	}
	w.router.o.Log.DebugContext(ctx, string(kind), "requestId", w.request.ID, "capability", w.request.Capability,
		"outcome", outcome, "client", w.client, "detail", detail)
	return agentdb.Entry{Kind: kind, Agent: w.router.o.ID.String(), RequestID: w.request.ID,
		Capability: w.service.Definition().Name, Client: client, TaskHash: w.response.TaskHash, Outcome: outcome,
		ClientSignature: proof, Detail: raw}, nil
}

// later logs the verification of a payment and leaves its entry to the next step of the payment's work. The claim or
// the settlement that follows stores it, so that one commit is enough for both.
func (w *work) later(ctx context.Context, outcome string, detail map[string]any) error {
	e, err := w.logged(ctx, agentdb.Verification, outcome, detail)
	if err == nil {
		w.log = append(w.log, e)
	}
	return err
}

// allowed is the outcome of a decision that lets a request go on.
const allowed = "allow"

// append stores entries after those that wait.
func (w *work) append(ctx context.Context, more ...agentdb.Entry) error {
	if err := w.router.log.Add(ctx, append(w.log, more...)...); err != nil {
		return err
	}
	w.log = nil
	return nil
}

// flush stores entries that still wait at the end of a request. A failure is logged.
func (w *work) flush(ctx context.Context) {
	if len(w.log) == 0 {
		return
	}
	err := lasting(ctx, func(ctx context.Context) error { return w.append(ctx) })
	if err != nil {
		w.router.o.Log.ErrorContext(ctx, "decision not stored", "requestId", w.request.ID, "error", err)
	}
}

// finish is step 8. It returns the response with the output, or with the problem for err, and logs it.
func (w *work) finish(ctx context.Context, span trace.Span, err error) *Response {
	r, name := w.response, "unknown"
	w.flush(ctx)
	if w.service != nil {
		name = w.service.Definition().Name
	}
	if err != nil {
		r.Problem = problemOf(err)
		r.Status, r.Output, r.Signed = r.Problem.Status, nil, nil
		if r.Problem.Demand == nil && r.Status >= http.StatusInternalServerError {
			w.router.o.Log.ErrorContext(ctx, "request failed", "requestId", r.RequestID, "correlationId",
				w.request.Correlation, "capability", name, "status", r.Status, "error", err)
		}
	} else {
		r.Output = w.output
	}
	if r.Problem != nil && r.Problem.Demand != nil {
		r.Settlement = w.failure
	}
	took := time.Since(w.asked)
	w.router.metrics.requests.WithLabelValues(name, strconv.Itoa(r.Status)).Inc()
	w.router.metrics.duration.WithLabelValues(name).Observe(took.Seconds())
	w.conclude(span, name)
	w.router.o.Log.InfoContext(ctx, "execution", "requestId", r.RequestID, "correlationId", w.request.Correlation,
		"traceId", span.SpanContext().TraceID(), "capability", name, "status", r.Status,
		"ms", took.Milliseconds(), "client", w.client, "paid", w.row != nil, "replayed", r.Replayed, "mode", r.Mode)
	return r
}

// WriteSettlement adds the header of the settlement, in the form of the payment's version.
func (r *Response) WriteSettlement(h http.Header) error {
	if r.Settlement == nil || r.PaymentVersion == 0 {
		return nil
	}
	return x402.WriteSettlement(h, r.PaymentVersion, *r.Settlement)
}
