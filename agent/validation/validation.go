// Package validation asks a validator on the chain to confirm paid results where the policy of an agent wants it
// (section 6, requireValidationAbove), and judges the answers.
//
// Requests has the validations of an agent. The log of executions says which wait: a request is sent once, by a
// wallet that follows it after a crash, however many processes serve the agent. Nobody waits for the answer: the
// signed answer to the client names the request, and the receipts show how it stands. Take stores an answer that the
// chain shows, and judge says whether its validator is good enough by the policy. Steps are rows that are only added,
// so that two processes that do the same step store it once.
//
// Answers is the other side: an agent that others name as validator answers their requests, once each. Strangers make
// requests, and judging costs the agent. So the document MUST have the hash of the request, the judgments of a day are
// bounded, and a request that cannot be judged within a week is left unanswered. Silence is the answer, as one
// on the chain would cost gas for every request that a stranger makes. The verdict is stored before it is sent: a
// crash between the two sends the same answer.
//
// Run of both ends with its context; errors are logged and tried again.
package validation

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings"
	"repute/orchestrator/transaction"
	"repute/store"
	"repute/store/agentdb"
	"repute/store/column"
)

// Sender sends a transaction exactly once per intent. repute.ErrInvalid and repute.ErrConflict are final.
type Sender interface {
	SendValidationRequest(ctx context.Context, intent transaction.Intent) (transaction.Sent, error)
}

// Judge compares the score of a validator with the policy. The error is repute.ErrUnavailable where the
// score cannot be read now.
type Judge interface {
	Validator(ctx context.Context, validator common.Address) (counts bool, reason string, err error)
}

// Options configure Requests.
type Options struct {
	DB       *store.DB
	ID       repute.AgentID
	Registry common.Address // of validations
	// Validator is asked. Sender's identity Slug signs, and MUST be of the agent's owner or operator.
	Validator common.Address
	Sender    Sender
	Slug      string
	Judge     Judge
	Log       *slog.Logger
	Every     time.Duration // between looks at what waits, defaultEvery when 0
}

// defaultEvery is the time between looks at what waits.
const defaultEvery = 5 * time.Second

const (
	// maxOpen bounds the validations of one look.
	maxOpen = 100
	// sendTime bounds one look at a request's transaction: it is followed again at the next one.
	sendTime = time.Minute
)

// Requests are the validations of an agent.
type Requests struct{ o Options }

// New returns the validations of an agent.
func New(o Options) *Requests {
	if o.Every == 0 {
		o.Every = defaultEvery
	}
	return &Requests{o}
}

// Run asks for what waits and judges what was answered until ctx ends.
func (r *Requests) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		open, err := agentdb.OpenValidations(ctx, r.o.DB, r.o.ID.String(), maxOpen)
		r.failed(ctx, "read validations", err)
		for i := range open {
			r.failed(ctx, "validation", r.step(ctx, &open[i]))
		}
		repute.Pause(ctx, r.o.Every)
	}
	return nil
}

// step does the next step of a validation.
func (r *Requests) step(ctx context.Context, v *agentdb.Validation) error {
	switch v.Step {
	case "":
		return r.request(ctx, v)
	case agentdb.ValidationAnswered:
		return r.judge(ctx, v)
	}
	return nil // the validator did not answer yet
}

// request sends the request of a validation. Its document is in the URI, so that nothing needs to be
// reached to read it.
func (r *Requests) request(ctx context.Context, v *agentdb.Validation) error {
	uri := dataURI([]byte(v.Document))
	data, err := bindings.NewValidationRegistry().TryPackValidationRequest(r.o.Validator, r.o.ID.TokenID.ToBig(), uri,
		v.Request)
	if err != nil {
		return fmt.Errorf("validation request: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	sent, err := r.o.Sender.SendValidationRequest(limited, transaction.Intent{ID: "validation/" + v.Request.Hex(),
		Origin: transaction.Origin{Agent: r.o.Slug, Run: requestRun},
		Tx: transaction.Tx{ChainID: r.o.ID.ChainID, Target: r.o.Registry, Data: data,
			Purpose: "validation of a paid result"}})
	switch {
	case err == nil && sent.OK:
		r.o.Log.InfoContext(ctx, "validation requested", "request", v.Request, "validator", r.o.Validator,
			"transaction", sent.Hash)
		return r.add(ctx, v, agentdb.ValidationRequested, map[string]any{"validator": r.o.Validator,
			"registry": r.o.Registry, "transaction": sent.Hash})
	case err == nil:
		return r.give(ctx, v, fmt.Errorf("transaction %s was reverted", sent.Hash))
	case errors.Is(err, repute.ErrUnavailable), ctx.Err() != nil, limited.Err() != nil, !final(err):
		return fmt.Errorf("request %s: %w", v.Request, err)
	}
	return r.give(ctx, v, err)
}

// dataURI is a URI that has a document of JSON in it.
func dataURI(document []byte) string {
	return "data:application/json;base64," + base64.StdEncoding.EncodeToString(document)
}

// requestRun is the run of the wallet's intents that are requests.
const requestRun = "agent-validation"

// final reports whether the transaction of a request can never be mined.
func final(err error) bool {
	return errors.Is(err, repute.ErrInvalid) || errors.Is(err, repute.ErrConflict)
}

// give stores that a validation cannot be requested.
func (r *Requests) give(ctx context.Context, v *agentdb.Validation, cause error) error {
	r.o.Log.ErrorContext(ctx, "validation not requested", "request", v.Request, "validator", r.o.Validator, "error",
		cause)
	return r.add(ctx, v, agentdb.ValidationFailed, map[string]any{"reason": fmt.Sprintf("%.500s", cause.Error())})
}

// Take takes a validator's answer from the chain. Answers to requests of others are left out: the
// owner can ask by itself too.
func (r *Requests) Take(ctx context.Context, e repute.Record) error {
	a, ok := e.Event.(repute.ValidationResponse)
	if !ok || e.Log.Address != r.o.Registry || a.TokenID != r.o.ID.TokenID {
		return nil
	}
	known, err := agentdb.Validations(ctx, r.o.DB, r.o.ID.String(), []common.Hash{a.RequestHash})
	if err != nil {
		return err
	}
	v, ours := known[a.RequestHash]
	if !ours {
		return nil
	}
	r.o.Log.InfoContext(ctx, "validation answered", "request", a.RequestHash, "validator", a.Validator, "response",
		a.Response)
	return r.add(ctx, &v, agentdb.ValidationAnswered, map[string]any{"validator": a.Validator, "response": a.Response,
		"tag": fmt.Sprintf("%.100s", column.CleanText(a.Tag)), "answer": e.Log.TxHash})
}

// judge compares the validator's score with the policy.
func (r *Requests) judge(ctx context.Context, v *agentdb.Validation) error {
	var told struct {
		Validator common.Address `json:"validator"`
		Response  uint8          `json:"response"`
	}
	if err := json.Unmarshal(v.Detail, &told); err != nil {
		return fmt.Errorf("stored validation: %w", err)
	}
	counts, reason, err := r.o.Judge.Validator(ctx, told.Validator)
	if err != nil {
		return fmt.Errorf("validator %s: %w", told.Validator, err)
	}
	level := slog.LevelInfo
	if !counts {
		level = slog.LevelWarn
	}
	r.o.Log.Log(ctx, level, "validation judged", "request", v.Request, "validator", told.Validator, "response",
		told.Response, "counts", counts, "reason", reason)
	return r.add(ctx, v, agentdb.ValidationJudged, map[string]any{"counts": counts, "reason": reason})
}

func (r *Requests) add(ctx context.Context, v *agentdb.Validation, s agentdb.ValidationStep,
	detail map[string]any) error {
	return agentdb.AddValidation(ctx, r.o.DB, r.o.ID.String(), v.Request, s, detail)
}

// failed logs what is tried again later.
func (r *Requests) failed(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		r.o.Log.WarnContext(ctx, what+" failed", "error", err)
	}
}
