package agentdb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute/store"
)

// ValidationStep is the outcome of an entry about the validation of an execution.
type ValidationStep string

// Steps; each is stored once. An execution whose Detail has the member validation waits for the first one. The
// last one is that which is the furthest on, whenever it was stored: a validator can answer before the process that
// asked knows that its request is on the chain.
const (
	ValidationRequested ValidationStep = "validation requested" // the request is on the chain
	ValidationAnswered  ValidationStep = "validation answered"  // a validator answered on the chain
	ValidationJudged    ValidationStep = "validation judged"    // the validator's score was compared
	ValidationFailed    ValidationStep = "validation failed"    // it can never be requested
)

// Validation is the validation of an execution, with what is known of its steps.
type Validation struct {
	Request  common.Hash     // names it on the chain
	Document string          // that was hashed
	Detail   json.RawMessage // the details of its steps, later ones over earlier ones
	Step     ValidationStep  // the last one; empty while nothing was done
}

// validations selects executions with a validation, and the details of its steps.
const validations = `
	select e.detail->>'validation', e.detail->>'document', coalesce(v.outcome, ''), coalesce(v.details, '[]')
	from agent_receipts e
	left join lateral (
		select (array_agg(s.outcome order by array_position(array['validation requested', 'validation failed',
				'validation answered', 'validation judged'], s.outcome) desc nulls last))[1] outcome,
			json_agg(s.detail order by s.at, s.number) details
		from agent_receipts s where s.agent = e.agent and s.kind = 'event' and s.outcome like 'validation %'
			and s.detail->>'validation' = e.detail->>'validation') v on true
	where e.agent = $1 and e.kind = 'execution' and e.detail->>'validation' is not null`

// OpenValidations returns validations of an agent that wait for the agent: to be requested or to be judged, the
// oldest first. Those that wait for a validator, who may never answer, MUST NOT take the place of others.
func OpenValidations(ctx context.Context, db *store.DB, agent string, limit int) ([]Validation, error) {
	return readValidations(ctx, db, validations+` and coalesce(v.outcome, '') in ('', 'validation answered')
		order by e.at, e.number limit $2`, agent, limit)
}

// Validations returns the validations of requests by their hash.
func Validations(ctx context.Context, db *store.DB, agent string, requests []common.Hash) (map[common.Hash]Validation,
	error) {
	texts, out := []string{}, map[common.Hash]Validation{}
	for _, r := range requests {
		texts = append(texts, r.Hex())
	}
	list, err := readValidations(ctx, db, validations+` and e.detail->>'validation' = any($2)`, agent, texts)
	for _, v := range list {
		out[v.Request] = v
	}
	return out, err
}

func readValidations(ctx context.Context, db *store.DB, query string, args ...any) ([]Validation, error) {
	rows, _ := db.Pool().Query(ctx, query, args...)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (v Validation, err error) {
		var hash string
		var steps []map[string]json.RawMessage
		if err := row.Scan(&hash, &v.Document, &v.Step, &steps); err != nil {
			return v, err
		}
		v.Request = common.HexToHash(hash)
		v.Detail, err = merged(steps)
		return v, err
	})
	return out, store.Failed("read validations", err)
}

// AddValidation stores a step of a validation with its detail, unless it is stored.
func AddValidation(ctx context.Context, db *store.DB, agent string, request common.Hash, step ValidationStep,
	detail map[string]any) error {
	all := map[string]any{"validation": request}
	maps.Copy(all, detail)
	raw, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("validation: %w", err)
	}
	_, err = addOnce(ctx, db, &Entry{Kind: Event, Agent: agent, Outcome: string(step), Detail: raw},
		fmt.Sprintf("validation %s %s", agent, request),
		`select exists (select from agent_receipts where agent = $1 and kind = 'event' and outcome = $2
			and detail->>'validation' = $3)`, agent, step, request.Hex())
	return err
}
