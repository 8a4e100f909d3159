package graph

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	graphql "github.com/graph-gophers/graphql-go"
	gqlerrors "github.com/graph-gophers/graphql-go/errors"

	"repute"
	"repute/api/answers"
	"repute/api/graph/socket"
	"repute/api/wire"
	"repute/api/wire/push"
	"repute/internal/httpapi"
	"repute/store"
	"repute/store/changedata"
)

// subscriptionCost is what a subscription costs, besides what each of its events may cost.
const subscriptionCost = 500

// Subscribe runs an operation over a WebSocket: a subscription until ctx ends, a query once. It implements the
// Subscriber of graphql-transport-ws. A goroutine settles the errors of each answer; it ends with ctx or when the
// library closes its channel.
func (e *Endpoint) Subscribe(ctx context.Context, query, operation string, variables map[string]any) (<-chan any, error) {
	if wait := e.server.Wait(ctx, httpapi.CallerOf(ctx)); wait > 0 {
		return nil, fmt.Errorf("too many requests, try again in %s", wait.Round(time.Second))
	}
	ctx, spent := withBudget(withWork(ctx, e.o.Work), e.o.Cost)
	in, err := e.schema.Subscribe(ctx, query, operation, variables)
	if err != nil {
		return nil, err
	}
	out := make(chan any)
	go func() {
		defer close(out)
		for answer := range in {
			if r, ok := answer.(*graphql.Response); ok {
				answer = e.settled(ctx, r, spent)
			}
			select {
			case out <- answer:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, nil
}

// settled brings the errors of an answer into the form of all answers.
func (e *Endpoint) settled(ctx context.Context, r *graphql.Response, spent *budget) *graphql.Response {
	if spent.exceeded() {
		return &graphql.Response{Errors: []*gqlerrors.QueryError{costError(spent.limit)}}
	}
	for _, q := range r.Errors {
		e.settleError(ctx, q)
	}
	return r
}

// subscriptionResolver resolves the root fields of subscriptions.
type subscriptionResolver struct {
	*answers.Index
	o Options
}

// Subscription returns the resolver of subscriptions, whose fields have names of queries too.
func (q *queryResolver) Subscription() any { return &subscriptionResolver{q.index, q.options} }

// changesFilter selects changes of the feed.
type changesFilter struct {
	Since, Finality *string
	Agent           *wire.ID
	ChainID         *wire.Long
	Kinds           *[]string
}

// query returns the filter as parameters of GET /changes.
func (f *changesFilter) query() answers.ChangesQuery {
	q := answers.ChangesQuery{Since: orEmpty(f.Since), Agent: orEmpty(f.Agent), Finality: orEmpty(f.Finality)}
	if f.ChainID != nil {
		q.ChainID = strconv.FormatInt(int64(*f.ChainID), 10)
	}
	if f.Kinds != nil {
		q.Kinds = strings.Join(*f.Kinds, ",")
	}
	return q
}

// Changes streams the changes that a filter selects.
func (s *subscriptionResolver) Changes(ctx context.Context, args struct{ Filter *changesFilter }) (<-chan *push.ChangeEvent,
	error) {
	if args.Filter == nil {
		args.Filter = &changesFilter{}
	}
	f, err := s.begin(ctx, args.Filter)
	if err != nil {
		return nil, err
	}
	return follow(ctx, s, f, func(c *store.Change) (*push.ChangeEvent, error) { return push.EncodeEvent(c), nil }), nil
}

// Reputation streams the changes of an agent's score, with a bound those that cross it.
func (s *subscriptionResolver) Reputation(ctx context.Context, args struct {
	ID              wire.ID
	Below, Above    *float64
	Since, Finality *string
}) (<-chan *push.ScoreEvent, error) {
	f, err := s.begin(ctx, &changesFilter{Agent: &args.ID, Since: args.Since, Finality: args.Finality,
		Kinds: &[]string{changedata.KindScore}})
	if err != nil {
		return nil, err
	}
	mode := changedata.Provisional
	if f.filter.Final {
		mode = changedata.Final
	}
	return follow(ctx, s, f, func(c *store.Change) (*push.ScoreEvent, error) {
		score, err := changedata.ScoreOf(c)
		if err != nil || score == nil || score.Mode != mode {
			return nil, err
		}
		if bounded := args.Below != nil || args.Above != nil; bounded &&
			!(args.Below != nil && score.CrossesBelow(*args.Below)) && !(args.Above != nil && score.CrossesAbove(*args.Above)) {
			return nil, nil
		}
		return push.EncodeScoreEvent(c, score), nil
	}), nil
}

// agentUpdate is a change of an agent, and the agent after it.
type agentUpdate struct {
	Change *push.ChangeEvent // nil for the first update, which shows the agent as it is
	query  *queryResolver
	id     wire.ID
	once   sync.Once
}

// Agent reads the agent. An update may cost as much as a query.
func (u *agentUpdate) Agent(ctx context.Context) (*agentNode, error) {
	u.once.Do(func() { resetBudget(ctx) })
	return u.query.Agent(ctx, agentArgs{ID: u.id})
}

// Agent streams an agent: at once, and after each of its changes.
func (s *subscriptionResolver) Agent(ctx context.Context, args struct {
	ID    wire.ID
	Since *string
}) (<-chan *agentUpdate, error) {
	f, err := s.begin(ctx, &changesFilter{Agent: &args.ID, Since: args.Since})
	if err != nil {
		return nil, err
	}
	q := &queryResolver{index: s.Index, options: s.o}
	f.first = args.Since == nil
	return follow(ctx, s, f, func(c *store.Change) (*agentUpdate, error) {
		u := &agentUpdate{query: q, id: args.ID}
		if c != nil {
			u.Change = push.EncodeEvent(c)
		}
		return u, nil
	}), nil
}

// place is where a subscription begins, and what it selects.
type place struct {
	since  string
	filter store.ChangeFilter
	first  bool // an event is sent before the first change
}

// begin checks the arguments of a subscription. repute.ErrGone, which names the oldest cursor, for one that is too old.
// A subscription without since begins at the newest change, which is read before the resolver returns: changes from
// then on are not missed.
func (s *subscriptionResolver) begin(ctx context.Context, f *changesFilter) (p place, err error) {
	if socket.Of(ctx) == nil {
		return p, repute.Invalid("query", "is a subscription", "open a WebSocket with the protocol graphql-transport-ws")
	}
	if err := charge(ctx, subscriptionCost); err != nil {
		return p, err
	}
	q := f.query()
	if p.filter, err = q.Filter(ctx, s.Index); err != nil {
		return p, err
	}
	if p.since = q.Since; f.Since == nil {
		p.since, err = s.DB.NewestChange(ctx)
		return p, err
	}
	_, _, err = s.DB.Changes(ctx, p.since, 1, store.ChangeFilter{})
	return p, err
}

// follow sends an event for each change that event makes one of, until ctx ends. Where it cannot go on, or the client
// accepts no event for too long, it closes the connection with a code that says why. Nothing is buffered for a client.
// Its goroutine owns the channel. It ends with ctx, which the library or the connection's end cancels.
func follow[E any](ctx context.Context, s *subscriptionResolver, p place, event func(*store.Change) (*E, error)) <-chan *E {
	out := make(chan *E)
	conn := socket.Of(ctx)
	send := func(c *store.Change) error {
		e, err := event(c)
		if err != nil || e == nil {
			return err
		}
		late := time.NewTimer(s.o.SlowAfter)
		defer late.Stop()
		select {
		case out <- e:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return errSlow
		}
	}
	go func() {
		defer close(out)
		var err error
		if p.first {
			err = send(nil)
		}
		if err == nil {
			err = s.o.Feed.Follow(ctx, p.since, p.filter, func(list []store.Change, _ string) error {
				for i := range list {
					if err := send(&list[i]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errSlow):
			conn.End(socket.Slow, "events were not read in time: continue after the last cursor")
		case errors.Is(err, repute.ErrGone):
			conn.End(socket.Gone, "the next changes are no longer kept: read the state again")
		default:
			s.o.log.WarnContext(ctx, "a subscription ends because changes cannot be read", "error", err)
			conn.End(socket.Failed, "changes cannot be read now")
		}
		<-ctx.Done() // a closed channel would end the subscription as if it was complete
	}()
	return out
}

// resetBudget lets the next event of a subscription cost as much as a query. Events are resolved one after the other,
// so that no other event is charged meanwhile.
func resetBudget(ctx context.Context) {
	if b, found := ctx.Value(budgetKey{}).(*budget); found {
		b.spent.Store(0)
	}
}

// errSlow ends the subscriptions of a client that does not read.
var errSlow = errors.New("the client reads too slowly")
