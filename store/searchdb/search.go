package searchdb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/query"
)

// Count is a number of results, or a lower bound of it.
type Count struct {
	Value   int64
	AtLeast bool // there are more
}

// Found is a page of matching agents.
type Found struct {
	store.Page[repute.Agent]
	// Total is of all pages.
	Total Count
	// Match is how the text was matched; empty without a text and when no agent matches.
	Match Match
	// Similar is for each item how many near-identical agents of its owner it stands for, itself
	// not counted. It is nil where they are listed one by one.
	Similar []int64
}

const (
	// maxCounted is how far totals and facets are counted.
	maxCounted = 10_000
	// maxHits is the most documents that are ordered, twice: once for documents whose names match.
	// Where more documents have all words, any of them are ordered; for most of the words see
	// narrow.
	maxHits         = 20_000
	maxSearchLength = 200
	maxSearchFolded = 2000 // bytes, of a text whose letters are other forms of several
	maxSearchWords  = 8
	// searchGrace is how much later a page of several slow statements is given up: a single slow
	// statement should end by its own timeout, which keeps the connection.
	searchGrace = 250 * time.Millisecond
	// nearWord is the share of trigrams that a misspelled word must have in common with a word of a
	// name.
	nearWord = 0.45
)

// errTooMuch is returned for a search that reads too much, errTooMany for one that got no slot.
var (
	errTooMuch = fmt.Errorf("the search finds too much to be ordered in time: %w", context.DeadlineExceeded)
	errTooMany = fmt.Errorf("too many searches at once: %w", context.DeadlineExceeded)
)

// Timeouts are the longest times of a search: Search of all statements of a page together, Count of the statement that
// counts the matches.
type Timeouts struct{ Search, Count time.Duration }

// SetTimeouts bounds the searches of a DB. It is called before the first search; without it a search may take a minute.
func SetTimeouts(db *store.DB, t Timeouts) { store.Kept(db, func() *Timeouts { return &t }) }

// timeouts returns the bounds of the searches of a DB.
func timeouts(db *store.DB) Timeouts {
	return *store.Kept(db, func() *Timeouts { return &Timeouts{time.Minute, time.Minute} })
}

// Agents returns the newest state of the agents that match, in pages. Without a text every chain is
// read in order by its own index and the results are merged, so that each page costs the same. With
// a text all matches are ordered, by default the best ones first; of tens of thousands of matching
// documents only a part is considered, exact names and names first.
//
// Items have no metadata, at most 2 KiB of a URI and the first ten problems of a document.
// Registrations are without unknown members, and long ones are shortened. It returns
// context.DeadlineExceeded when a page takes the database longer than SetTimeouts allows or too many
// searches run. A total that takes long is counted in part.
func Agents(ctx context.Context, db *store.DB, f AgentFilter) (found Found, err error) {
	l, err := newListing(f)
	if err != nil {
		return found, err
	}
	err = searching(ctx, db, f, func(ctx context.Context, tx pgx.Tx, chains []*chaindb.ChainView) error {
		return l.read(ctx, tx, timeouts(db), chains, &found)
	})
	return found, err
}

// listing is a checked request for one page of agents.
type listing struct {
	filter   AgentFilter
	order    agentOrder
	question string    // identifies the filter in cursors
	from     agentsPos // where the page begins, zero on the first page
	going    bool      // the page is not the first one
	modes    []Match   // ways to match the text, the strictest first
}

// newListing checks a filter and decodes its cursor. A page that is not the first one matches the
// text as the first page did.
func newListing(f AgentFilter) (l listing, err error) {
	l.filter = f
	if l.order, err = f.order(); err != nil {
		return l, err
	}
	if err := errors.Join(f.check(), store.CheckLimit(f.Limit)); err != nil {
		return l, err
	}
	if l.question, err = f.question(); err != nil {
		return l, err
	}
	if l.from, l.going, err = store.DecodeCursor[agentsPos](l.question, f.After); err != nil {
		return l, err
	}
	l.modes = matches(f.Text)
	if l.going {
		if !slices.Contains(l.modes, l.from.Match) {
			return l, store.BadCursor()
		}
		l.modes = []Match{l.from.Match}
	}
	return l, nil
}

// read fills found with the page by the first way to match that finds an agent, and counts.
func (l *listing) read(ctx context.Context, tx pgx.Tx, t Timeouts, chains []*chaindb.ChainView, found *Found) error {
	found.AsOf = chaindb.LatestOf(chains)
	deadline := time.Now().Add(t.Search)
	together, cancel := context.WithDeadline(ctx, deadline.Add(searchGrace))
	defer cancel()
	for i, mode := range l.modes {
		if err := boundStatements(ctx, tx, time.Until(deadline)); err != nil {
			return err
		}
		q, err := l.filter.query(together, tx, mode)
		if err != nil {
			return err
		}
		found.Match = mode
		matched, err := l.readMatch(together, tx, q, chains, found)
		if err != nil {
			return err
		}
		if !matched {
			if i+1 < len(l.modes) {
				continue
			}
			found.Match = ""
		}
		if err := boundStatements(ctx, tx, t.Count); err != nil {
			return err
		}
		return found.count(ctx, tx, q, l.order, chains)
	}
	return nil
}

// readMatch reads the page by one way to match, and reports whether any agent matches, on
// whichever page. An empty page does not exclude it: documents that were not looked into may have
// the words, and the order leaves out agents without a value to order by.
func (l *listing) readMatch(ctx context.Context, tx pgx.Tx, q *agentQuery, chains []*chaindb.ChainView,
	found *Found) (bool, error) {
	if l.filter.CountOnly && q.match == nil {
		return true, nil
	}
	entries, err := found.page(ctx, tx, q, l, chains)
	if err == nil && entries == 0 && q.match.widen() {
		entries, err = found.page(ctx, tx, q, l, chains)
	}
	if err != nil || entries > 0 || l.going {
		return true, err
	}
	if q.match != nil && q.late {
		c, err := q.count(ctx, tx, l.order, chains)
		if err != nil || c.AtLeast {
			return true, err
		}
	}
	if found.Match != "" && l.order.join != "" {
		return q.any(ctx, tx, chains)
	}
	return false, nil
}

// page reads the page of a listing and returns how many agents it has.
func (f *Found) page(ctx context.Context, tx pgx.Tx, q *agentQuery, l *listing, chains []*chaindb.ChainView) (int,
	error) {
	limit := l.filter.Limit
	streams, err := q.page(ctx, tx, l.order, chains, l.from.Chains, limit)
	if err != nil {
		return 0, err
	}
	entries, after, more := mergeStreams(streams, limit, l.order.desc, l.from.Chains)
	if more {
		if f.Next, err = store.EncodeCursor(l.question, agentsPos{f.Match, after}); err != nil {
			return 0, err
		}
	}
	ids := make([]repute.AgentID, len(entries))
	for i, e := range entries {
		ids[i] = e.id
		if q.match != nil && !q.unfolded {
			f.Similar = append(f.Similar, e.folded)
		}
	}
	f.Items, err = inOrder(ctx, tx, ids)
	return len(ids), err
}

// errUncounted ends a search of which only the total is unknown.
var errUncounted = errors.New("counting takes too long")

// count sets the total, with the last statement of a search. When it takes too long, the total is
// at least the length of the page.
func (f *Found) count(ctx context.Context, tx pgx.Tx, q *agentQuery, o agentOrder,
	chains []*chaindb.ChainView) (err error) {
	if f.Total, err = q.count(ctx, tx, o, chains); isCanceled(err) && ctx.Err() == nil {
		f.Total = Count{Value: int64(len(f.Items)), AtLeast: true}
		return errUncounted
	}
	return err
}

// boundStatements sets the timeout of each further statement of a transaction. It returns
// errTooMuch when no time is left.
func boundStatements(ctx context.Context, tx pgx.Tx, left time.Duration) error {
	if left < time.Millisecond {
		return errTooMuch
	}
	_, err := tx.Exec(ctx, fmt.Sprintf("set local statement_timeout = %d", left.Milliseconds()))
	return err
}

// any reports whether an agent matches, in whatever order.
func (q *agentQuery) any(ctx context.Context, tx pgx.Tx, chains []*chaindb.ChainView) (found bool, err error) {
	with, from := q.source(false)
	err = tx.QueryRow(ctx, fmt.Sprintf("%s select exists (select from %s where true%s)", with, from, q.where),
		q.withArgs(chains)...).Scan(&found)
	return found, err
}

// isCanceled reports whether Postgres ended a statement, for instance by its timeout.
func isCanceled(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "57014"
}

// count counts up to one more than maxCounted.
func (q *agentQuery) count(ctx context.Context, tx pgx.Tx, o agentOrder, chains []*chaindb.ChainView) (c Count,
	err error) {
	with, from := q.source(false)
	matching := fmt.Sprintf(`select from unnest($1::bigint[]) as k(chain_id) cross join lateral (
		select from %s%s where a.chain_id = k.chain_id%s limit %d) a`, from, o.join, q.whereIn(o), maxCounted+1)
	if q.scoredAlone() {
		matching = q.scores("")
	}
	if q.match != nil {
		what := ""
		if !q.unfolded {
			what = "distinct " + foldKey
		}
		matching = fmt.Sprintf("select %s from %s%s where true%s", what, from, o.join, q.whereIn(o))
	}
	var hits int
	err = tx.QueryRow(ctx, fmt.Sprintf("%s select count(*), %s from (%s limit %d) m", with, q.hitCount(), matching,
		maxCounted+1),
		q.withArgs(chains)...).Scan(&c.Value, &hits)
	return c.bounded(hits), err
}

// bounded returns the count when hits documents were considered.
func (c Count) bounded(hits int) Count {
	return Count{min(c.Value, maxCounted), c.Value > maxCounted || hits >= maxHits}
}

// searchSlots is a semaphore with a place for every running search.
type searchSlots chan struct{}

// newSearchSlots returns a semaphore for a third of the readers.
func newSearchSlots(db *store.DB) *searchSlots {
	slots := make(searchSlots, max(1, db.Readers().Config().MaxConns/3))
	return &slots
}

// searching runs list on one snapshot with bounded statements. Searches use only a part of the
// readers, so that requests for something by its id do not wait behind them.
func searching(ctx context.Context, db *store.DB, f AgentFilter,
	list func(context.Context, pgx.Tx, []*chaindb.ChainView) error) error {
	if !f.IsPlain() {
		slots := *store.Kept(db, func() *searchSlots { return newSearchSlots(db) })
		waited := time.NewTimer(timeouts(db).Search)
		defer waited.Stop()
		select {
		case slots <- struct{}{}:
			defer func() { <-slots }()
		case <-waited.C:
			return errTooMany
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	err := chaindb.View(ctx, db, "list agents", func(ctx context.Context, tx pgx.Tx) error {
		chains, err := chaindb.AskedChains(ctx, tx, f.ChainIDs)
		if err != nil {
			return err
		}
		if err := boundStatements(ctx, tx, timeouts(db).Search); err != nil {
			return err
		}
		_, err = tx.Exec(ctx,
			fmt.Sprintf("set local jit = off; set local pg_trgm.strict_word_similarity_threshold = %g",
				nearWord)+f.planning())
		if err != nil {
			return err
		}
		return list(ctx, tx, chains)
	})
	switch {
	case errors.Is(err, errUncounted):
		return nil
	case (isCanceled(err) || errors.Is(err, context.DeadlineExceeded)) && ctx.Err() == nil:
		return errTooMuch
	}
	return err
}

// planning returns settings that a search is planned with. How many agents have a price within bounds decides whether
// to begin with the prices or to follow the order of the page, so a plan for any bounds MUST NOT be used.
func (f AgentFilter) planning() string {
	if f.MinPrice == nil && f.MaxPrice == nil {
		return ""
	}
	return "; set local plan_cache_mode = force_custom_plan"
}

// inOrder reads agents in the order of ids.
func inOrder(ctx context.Context, tx pgx.Tx, ids []repute.AgentID) ([]repute.Agent, error) {
	agents, err := query.ReadAgents(ctx, tx, ids, false)
	if err != nil {
		return nil, err
	}
	out := make([]repute.Agent, 0, len(ids))
	for _, id := range ids {
		out = append(out, *agents[column.KeyOf(id)])
	}
	return out, nil
}
