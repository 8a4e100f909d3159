package agentdb

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute/store"
)

// AskedStep is the outcome of an entry about a request that names the agent as its validator.
type AskedStep string

// Steps; each is stored once, in this order. A request that is refused is not answered.
const (
	AskedReceived AskedStep = "request received" // the chain has the request
	AskedJudged   AskedStep = "request judged"   // the handler judged the result
	AskedRefused  AskedStep = "request refused"  // it is never answered
	AskedAnswered AskedStep = "request answered" // the answer is on the chain
)

// Asked is a request that names the agent as its validator, with what is known of its steps.
type Asked struct {
	Registry common.Address // contract of the request
	Request  common.Hash    // names it there
	Step     AskedStep      // the last one
	Received time.Time
	Detail   json.RawMessage // the details of its steps, later ones over earlier ones
}

// key names a request among those of all registries.
func (a *Asked) key() string { return a.Registry.Hex() + "/" + a.Request.Hex() }

// OpenAsked returns requests to an agent that are neither answered nor refused, the oldest first.
func OpenAsked(ctx context.Context, db *store.DB, agent string, limit int) ([]Asked, error) {
	rows, _ := db.Pool().Query(ctx, `select detail->>'asked', min(at),
			(array_agg(outcome order by array_position(array['request received', 'request judged'], outcome) desc))[1],
			json_agg(detail order by at, number)
		from agent_receipts where agent = $1 and kind = 'event'
			and outcome in ('request received', 'request judged', 'request refused', 'request answered')
		group by 1 having not bool_or(outcome in ('request refused', 'request answered'))
		order by 2, 1 limit $2`, agent, limit)
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a Asked, err error) {
		var key string
		var steps []map[string]json.RawMessage
		if err := row.Scan(&key, &a.Received, &a.Step, &steps); err != nil {
			return a, err
		}
		if len(key) != 2+40+1+2+64 {
			return a, fmt.Errorf("stored request %.120q", key)
		}
		a.Registry, a.Request = common.HexToAddress(key[:42]), common.HexToHash(key[43:])
		a.Detail, err = merged(steps)
		return a, err
	})
	return out, store.Failed("read requests to validate", err)
}

// merged is one object of the members of many, later ones over earlier ones.
func merged(steps []map[string]json.RawMessage) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for _, s := range steps {
		maps.Copy(all, s)
	}
	return json.Marshal(all)
}

// AddAsked stores a step of a request with its detail, unless it is stored. daily bounds the entries of the step in
// the last 24 hours, of all processes of the agent together, 0 for no bound: none is added beyond it. added reports
// whether the step was stored now.
func AddAsked(ctx context.Context, db *store.DB, agent string, a *Asked, step AskedStep, daily int,
	detail map[string]any) (added bool, err error) {
	all := map[string]any{"asked": a.key()}
	maps.Copy(all, detail)
	raw, err := json.Marshal(all)
	if err != nil {
		return false, fmt.Errorf("request to validate: %w", err)
	}
	return addOnce(ctx, db, &Entry{Kind: Event, Agent: agent, Outcome: string(step), Detail: raw},
		fmt.Sprintf("asked %s %s", agent, step), // one lock for all requests, so that the bound is exact
		`select exists (select from agent_receipts where agent = $1 and kind = 'event' and outcome = $2
				and detail->>'asked' = $3)
			or $4 > 0 and (select count(*) from agent_receipts where agent = $1 and kind = 'event' and outcome = $2
				and at > now() - interval '24 hours') >= $4`, agent, step, a.key(), daily)
}

// JudgedToday returns how many requests an agent judged in the last 24 hours.
func JudgedToday(ctx context.Context, db *store.DB, agent string) (n int, err error) {
	err = db.Pool().QueryRow(ctx, `select count(*) from agent_receipts where agent = $1 and kind = 'event'
		and outcome = $2 and at > now() - interval '24 hours'`, agent, AskedJudged).Scan(&n)
	return n, store.Failed("read requests to validate", err)
}
