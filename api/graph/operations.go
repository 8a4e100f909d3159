package graph

import (
	"context"
	"time"

	"repute/api/wire"
	"repute/api/wire/push"
	"repute/internal/httpapi"
	"repute/store/docdb"
	"repute/store/docstats"
	"repute/store/keydb"
	"repute/store/rundb"
	"repute/store/webhookdb"
)

// operations is what operators look after. Its fields are read when they are asked for.
type operations struct{ q *queryResolver }

// Operations is for callers with the role operate, as the routes of webhooks and keys. The role is checked here alone:
// fields below cannot be reached otherwise.
func (q *queryResolver) Operations(ctx context.Context) (*operations, error) {
	if err := httpapi.Allowed(ctx, httpapi.RoleOperate); err != nil {
		return nil, err
	}
	return &operations{q}, charge(ctx, readCost)
}

// Webhooks lists all webhooks, without their secrets.
func (o *operations) Webhooks(ctx context.Context) ([]push.Webhook, error) {
	if err := charge(ctx, searchCost); err != nil {
		return nil, err
	}
	list, err := webhookdb.List(ctx, o.q.index.DB)
	return wire.Each(list, push.EncodeWebhook), err
}

// apiKey is an API key without its text.
type apiKey struct {
	Name             string
	Scopes           []string
	Rate             wire.Long
	Created          wire.Time
	Expires, Revoked *wire.Time
	LastUsed         *string
}

// Keys lists all API keys, without their texts.
func (o *operations) Keys(ctx context.Context) ([]apiKey, error) {
	if err := charge(ctx, searchCost); err != nil {
		return nil, err
	}
	list, err := keydb.List(ctx, o.q.index.DB)
	return wire.Each(list, encodeKey), err
}

// encodeKey writes an API key.
func encodeKey(k keydb.Key) apiKey {
	maybe := func(t *time.Time) *wire.Time {
		if t == nil {
			return nil
		}
		return wire.EncodeTime(*t)
	}
	out := apiKey{Name: k.Name, Scopes: k.Scopes, Rate: wire.Long(k.Rate), Created: *wire.EncodeTime(k.Created),
		Expires: maybe(k.Expires), Revoked: maybe(k.Revoked)}
	if k.LastUsed != nil {
		out.LastUsed = new(k.LastUsed.Format(time.DateOnly))
	}
	return out
}

// jobCount is how many jobs have a kind and a state.
type jobCount struct {
	Kind, State string
	Count       wire.Long
}

// Jobs counts the jobs of the queue, as of the last ten seconds.
func (o *operations) Jobs(ctx context.Context) ([]jobCount, error) {
	if err := charge(ctx, searchCost); err != nil {
		return nil, err
	}
	db := o.q.index.DB
	list, err := countsOf(db).jobs.Get(ctx, func(ctx context.Context) ([]rundb.JobCount, error) { return rundb.Jobs(ctx, db) })
	return wire.Each(list, func(j rundb.JobCount) jobCount { return jobCount{j.Kind, j.State, wire.Long(j.Count)} }), err
}

// documentQueue is how many documents of a rank wait.
type documentQueue struct {
	Rank               string
	Planned, Due, Dead wire.Long
	Oldest             *wire.Time
}

// Documents counts the documents that wait to be read, as of the last ten seconds.
func (o *operations) Documents(ctx context.Context) ([]documentQueue, error) {
	if err := charge(ctx, searchCost); err != nil {
		return nil, err
	}
	db := o.q.index.DB
	list, err := countsOf(db).documents.Get(ctx, func(ctx context.Context) ([]docstats.RankQueue, error) {
		return docstats.ReadQueue(ctx, db)
	})
	return wire.Each(list, func(q docstats.RankQueue) documentQueue {
		return documentQueue{rankName(q.Rank), wire.Long(q.Planned), wire.Long(q.Due), wire.Long(q.Dead), wire.EncodeTime(q.Oldest)}
	}), err
}

// rankName returns what documents of a rank are.
func rankName(r docdb.Rank) string {
	switch r {
	case docdb.RankNew:
		return "new"
	case docdb.RankAgent:
		return "agent"
	case docdb.RankProof:
		return "proof"
	}
	return "file"
}

// Fetching reports whether some process reads documents.
func (o *operations) Fetching(ctx context.Context) (bool, error) {
	if err := charge(ctx, readCost); err != nil {
		return false, err
	}
	f, err := docstats.ReadFetching(ctx, o.q.index.DB)
	return f.Workers, err
}
