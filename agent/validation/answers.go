package validation

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/agent/capability"
	"repute/contracts/bindings"
	"repute/orchestrator/transaction"
	"repute/store"
	"repute/store/agentdb"
	"repute/store/column"
)

// Handler judges a result. The error is final unless it is repute.ErrUnavailable.
type Handler interface {
	Run(ctx context.Context, call capability.Call) (json.RawMessage, error)
}

// Answerer sends an answer exactly once per intent. repute.ErrInvalid and repute.ErrConflict are final.
type Answerer interface {
	SendValidationAnswer(ctx context.Context, intent transaction.Intent) (transaction.Sent, error)
}

// Documents reads the document of a request. The error is final where it is repute.ErrInvalid.
type Documents interface {
	Read(ctx context.Context, uri string) ([]byte, error)
}

// Chain makes calls that change nothing.
type Chain interface {
	Call(ctx context.Context, chainID uint64, from, to common.Address, data []byte) ([]byte, error)
}

// AnswerOptions configure Answers.
type AnswerOptions struct {
	DB         *store.DB
	ID         repute.AgentID
	Registries []common.Address // whose requests are answered
	Validator  common.Address   // the account that requests name: that of Sender's identity Slug
	Sender     Answerer
	Slug       string
	Handlers   map[string]Handler // by the capability whose results they judge
	Daily      int                // requests that are judged in 24 hours; 0 for none
	Documents  Documents
	Chain      Chain
	Log        *slog.Logger
	Every      time.Duration // between looks at what waits, answerEvery when 0
}

// answerEvery is the time between looks at requests that wait.
const answerEvery = 15 * time.Second

// Bounds of requests, which strangers make.
const (
	// maxRequestURI bounds the URI of a request that is stored, in bytes.
	maxRequestURI = 64 << 10
	// maxRequestAge is how long a request waits for its document, its handler or the daily bound.
	maxRequestAge = 7 * 24 * time.Hour
	// maxBackoff bounds the time between two attempts at a request.
	maxBackoff = time.Hour
	// maxReport bounds what a handler says, in bytes: its report is stored on the chain.
	maxReport = 4 << 10
	// judgeTime bounds one run of a handler.
	judgeTime = capability.MaxTimeout
)

// Answers are the requests that name the agent as validator of results of others. It answers those about the
// capabilities that it has handlers for, each once.
type Answers struct {
	o     AnswerOptions
	tried map[common.Hash]attempt // requests that failed for now; only Run uses it
}

// attempt is when a request is tried again.
type attempt struct {
	next time.Time
	wait time.Duration
}

// NewAnswers returns the requests to an agent.
func NewAnswers(o AnswerOptions) *Answers {
	if o.Every == 0 {
		o.Every = answerEvery
	}
	return &Answers{o: o, tried: map[common.Hash]attempt{}}
}

// Take stores a request that names the agent. Those about the agent itself, and in other registries, are
// left out: nobody validates its own work.
func (s *Answers) Take(ctx context.Context, e repute.Record) error {
	q, ok := e.Event.(repute.ValidationRequest)
	if !ok || q.Validator != s.o.Validator || q.TokenID == s.o.ID.TokenID ||
		!slices.Contains(s.o.Registries, e.Log.Address) {
		return nil
	}
	a := agentdb.Asked{Registry: e.Log.Address, Request: q.RequestHash}
	about := repute.AgentID{ChainID: s.o.ID.ChainID, Registry: s.o.ID.Registry, TokenID: q.TokenID}
	uri := q.URI
	if len(uri) > maxRequestURI {
		uri = ""
	}
	added, err := s.add(ctx, &a, agentdb.AskedReceived, 0, map[string]any{"about": about.String(),
		"uri": column.CleanText(uri), "transaction": e.Log.TxHash})
	if added {
		s.o.Log.InfoContext(ctx, "request to validate", "request", a.Request, "about", about)
	}
	return err
}

// Run judges and answers what waits until ctx ends.
func (s *Answers) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		open, err := agentdb.OpenAsked(ctx, s.o.DB, s.o.ID.String(), maxOpen)
		if err != nil && ctx.Err() == nil {
			s.o.Log.WarnContext(ctx, "read requests to validate failed", "error", err)
		}
		for i := range open {
			s.try(ctx, &open[i])
		}
		repute.Pause(ctx, s.o.Every)
	}
	return nil
}

// try does the next steps of a request, unless it failed a short time ago.
func (s *Answers) try(ctx context.Context, a *agentdb.Asked) {
	last, failed := s.tried[a.Request]
	if ctx.Err() != nil || failed && time.Now().Before(last.next) {
		return
	}
	err := s.step(ctx, a)
	if err == nil {
		delete(s.tried, a.Request)
		return
	}
	if ctx.Err() != nil {
		return
	}
	wait := min(max(2*last.wait, s.o.Every), maxBackoff)
	s.tried[a.Request] = attempt{time.Now().Add(wait), wait}
	s.o.Log.WarnContext(ctx, "request to validate is tried again", "request", a.Request, "after", wait, "error", err)
}

// asked is what is stored of a request and its judgment.
type asked struct {
	About string `json:"about"`
	URI   string `json:"uri"`
	verdict
	ReportURI string `json:"reportUri"`
}

// verdict is what a handler says of a result.
type verdict struct {
	Response *uint8          `json:"response"` // 0 to 100
	Tag      string          `json:"tag,omitempty"`
	Report   json.RawMessage `json:"report,omitempty"`
}

// step judges a request and sends its answer. A nil error is that of a request that ended.
func (s *Answers) step(ctx context.Context, a *agentdb.Asked) error {
	var d asked
	if err := json.Unmarshal(a.Detail, &d); err != nil {
		return fmt.Errorf("stored request: %w", err)
	}
	if a.Step == agentdb.AskedJudged {
		return s.send(ctx, a, &d)
	}
	err := s.judge(ctx, a, &d)
	switch {
	case final(err):
		return s.refuse(ctx, a, err)
	case err != nil && time.Since(a.Received) > maxRequestAge:
		return s.refuse(ctx, a, fmt.Errorf("too old: %w", err))
	}
	return err // once judged, the next look sends the answer that is stored
}

// judge has the handler of the request's capability judge the result, within the daily bound.
func (s *Answers) judge(ctx context.Context, a *agentdb.Asked, d *asked) error {
	if n, err := agentdb.JudgedToday(ctx, s.o.DB, s.o.ID.String()); err != nil || n >= s.o.Daily {
		return errors.Join(err, fmt.Errorf("%d of %d requests of a day are judged: %w", n, s.o.Daily,
			repute.ErrUnavailable))
	}
	if err := s.confirm(ctx, a, d); err != nil {
		return err
	}
	document, h, name, err := s.document(ctx, a, d)
	if err != nil {
		return err
	}
	v, err := s.run(ctx, a, d, h, name, document)
	if errors.Is(err, repute.ErrUnavailable) || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	detail := map[string]any{"capability": name}
	if err == nil {
		detail["response"], detail["tag"] = *v.Response, v.Tag
		detail["reportUri"], err = reportURI(a, d, name, s.o.ID, v)
	}
	if err != nil { // it counts for the daily bound: the handler has run
		detail = map[string]any{"capability": name, "reason": fmt.Sprintf("%.500s", err.Error())}
	}
	_, err = s.add(ctx, a, agentdb.AskedJudged, s.o.Daily, detail)
	return err
}

// confirm compares a request with the chain: an event can be of a block that is gone, and another process
// that signs with the same key can have answered.
func (s *Answers) confirm(ctx context.Context, a *agentdb.Asked, d *asked) error {
	contract := bindings.NewValidationRegistry()
	raw, err := s.o.Chain.Call(ctx, s.o.ID.ChainID, common.Address{}, a.Registry,
		contract.PackGetValidationStatus(a.Request))
	if err != nil {
		return fmt.Errorf("the chain does not show the request: %w: %w", repute.ErrUnavailable, dropKind(err))
	}
	status, err := contract.UnpackGetValidationStatus(raw)
	if err != nil {
		return fmt.Errorf("status of the request: %w", repute.ErrUnavailable)
	}
	about := s.o.ID
	about.TokenID.SetFromBig(status.AgentId)
	switch {
	case status.ValidatorAddress != s.o.Validator || about.String() != d.About:
		return repute.Invalid("request", "is another one on the chain", "the one of the event")
	case status.ResponseHash != [32]byte{} || status.Response != 0:
		return repute.Invalid("request", "is answered on the chain", "one that is not")
	}
	return nil
}

// dropKind keeps the text of an error without its kind: a contract that refuses a view is repute.ErrInvalid,
// which is final, while the request may come back with the next block.
func dropKind(err error) error { return errors.New(err.Error()) }

// document reads the document of a request, and finds the handler of the capability that it names. It MUST
// be what was hashed: else the requester could show another one to others.
func (s *Answers) document(ctx context.Context, a *agentdb.Asked, d *asked) (raw []byte, h Handler, name string,
	err error) {
	if d.URI == "" {
		return nil, nil, "", repute.Invalid("requestURI", "is missing or too long",
			fmt.Sprintf("1 to %d bytes", maxRequestURI))
	}
	if raw, err = s.o.Documents.Read(ctx, d.URI); err != nil {
		return nil, nil, "", fmt.Errorf("document of the request: %w", err)
	}
	var told struct {
		Agent      string         `json:"agent"`
		Capability string         `json:"capability"`
		Validator  common.Address `json:"validator"`
	}
	switch {
	case crypto.Keccak256Hash(raw) != a.Request:
		err = repute.Invalid("requestURI", "leads to another document than the hashed one",
			"keccak256 of it is requestHash")
	case json.Unmarshal(raw, &told) != nil:
		err = repute.Invalid("requestURI", "leads to no document of a request", `JSON with "capability"`)
	case told.Agent != "" && told.Agent != d.About,
		told.Validator != (common.Address{}) && told.Validator != s.o.Validator:
		err = repute.Invalid("requestURI", "leads to a document of another request",
			"agent and validator as on the chain")
	case s.o.Handlers[told.Capability] == nil:
		err = repute.Invalid("requestURI", fmt.Sprintf("names capability %.80q", told.Capability),
			"one that is validated here")
	}
	return raw, s.o.Handlers[told.Capability], told.Capability, err
}

// run asks the handler.
func (s *Answers) run(ctx context.Context, a *agentdb.Asked, d *asked, h Handler, name string,
	document []byte) (v verdict, err error) {
	input, err := json.Marshal(map[string]any{"requestHash": a.Request, "registry": a.Registry, "about": d.About,
		"request": json.RawMessage(document)})
	if err != nil {
		return v, fmt.Errorf("document of the request: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, judgeTime)
	defer cancel()
	out, err := h.Run(limited, capability.Call{AgentID: s.o.ID.TokenID.Dec(), Capability: name,
		RequestID: a.Request.Hex(), Correlation: a.Request.Hex(), Time: time.Now(), Input: input})
	if err != nil {
		return v, fmt.Errorf("handler: %w", err)
	}
	dec := json.NewDecoder(bytes.NewReader(out))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&v); err != nil || v.Response == nil || *v.Response > 100 || len(v.Tag) > 64 ||
		len(out) > maxReport {
		return v, repute.Invalid("handler", "does not answer with a verdict", fmt.Sprintf(
			`{"response": 0 to 100, "tag": "…", "report": …} of at most %d bytes`, maxReport))
	}
	return v, nil
}

// reportURI is the document of an answer, which is in its URI so that nothing needs to be reached to read it.
func reportURI(a *agentdb.Asked, d *asked, name string, by repute.AgentID, v verdict) (string, error) {
	raw, err := json.Marshal(map[string]any{"requestHash": a.Request, "about": d.About, "capability": name,
		"validator": by.String(), "response": v.Response, "report": v.Report})
	if err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return dataURI(raw), nil
}

// send sends the answer of a request that was judged.
func (s *Answers) send(ctx context.Context, a *agentdb.Asked, d *asked) error {
	if d.Response == nil {
		return s.refuse(ctx, a, errors.New("the handler gave no verdict"))
	}
	_, encoded, _ := bytes.Cut([]byte(d.ReportURI), []byte(","))
	document, err := base64.StdEncoding.DecodeString(string(encoded))
	if err != nil {
		return fmt.Errorf("stored report: %w", err)
	}
	data, err := bindings.NewValidationRegistry().TryPackValidationResponse(a.Request, *d.Response, d.ReportURI,
		crypto.Keccak256Hash(document), d.Tag)
	if err != nil {
		return fmt.Errorf("answer of a validator: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	sent, err := s.o.Sender.SendValidationAnswer(limited, transaction.Intent{
		ID:     "validation-answer/" + a.Registry.Hex() + "/" + a.Request.Hex(),
		Origin: transaction.Origin{Agent: s.o.Slug, Run: answerRun},
		Tx: transaction.Tx{ChainID: s.o.ID.ChainID, Target: a.Registry, Data: data,
			Purpose: "answer to validation request " + a.Request.Hex()}})
	switch {
	case err == nil && !sent.OK:
		return s.refuse(ctx, a, fmt.Errorf("transaction %s was reverted", sent.Hash))
	case err == nil:
		s.o.Log.InfoContext(ctx, "request to validate answered", "request", a.Request, "response", *d.Response,
			"transaction", sent.Hash)
		_, err = s.add(ctx, a, agentdb.AskedAnswered, 0, map[string]any{"answer": sent.Hash})
		return err
	case final(err) && !errors.Is(err, repute.ErrUnavailable) && limited.Err() == nil:
		return s.refuse(ctx, a, err)
	}
	return fmt.Errorf("answer to request %s: %w", a.Request, err)
}

// answerRun is the run of the wallet's intents that are answers.
const answerRun = "agent-validation-answer"

// refuse stores that a request is never answered. Silence is the answer: one on the chain would cost gas for
// every request that a stranger makes.
func (s *Answers) refuse(ctx context.Context, a *agentdb.Asked, cause error) error {
	s.o.Log.WarnContext(ctx, "request to validate refused", "request", a.Request, "error", cause)
	_, err := s.add(ctx, a, agentdb.AskedRefused, 0, map[string]any{"reason": fmt.Sprintf("%.500s", cause.Error())})
	return err
}

func (s *Answers) add(ctx context.Context, a *agentdb.Asked, step agentdb.AskedStep, daily int,
	detail map[string]any) (bool, error) {
	return agentdb.AddAsked(ctx, s.o.DB, s.o.ID.String(), a, step, daily, detail)
}
