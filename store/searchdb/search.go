package searchdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
	"repute/store/searchtext"
)

// Count is how many there are, or that there are more than were counted.
type Count struct {
	Value   int64
	AtLeast bool // there are more
}

// Found is a page of agents.
type Found struct {
	store.Page[repute.Agent]
	Total Count // of all pages
	Match Match // how the text was matched, "" without one and where no agent matches
	// Similar is how many near-identical agents of its owner each item stands for, itself
	// not counted. It is nil where they are listed one by one.
	Similar []int64
}

const (
	// maxCounted bounds what is counted for totals and facets.
	maxCounted = 10_000
	// maxHits bounds the documents that are put in order, twice: once for those whose
	// names match. Where more documents have all words these are any of them, see narrow
	// for most of the words.
	maxHits         = 20_000
	maxSearchLength = 200
	maxSearchFolded = 2000 // bytes, of a text whose letters are other forms of several
	maxSearchWords  = 8
	// searchTimeout bounds all statements of a page together, countTimeout the one that counts.
	// searchGrace is how much later a page is given up that several statements make slow: a
	// statement that is slow by itself is to end by its own timeout, which keeps the connection.
	searchTimeout = 3 * time.Second
	searchGrace   = 250 * time.Millisecond
	countTimeout  = time.Second
	// nearWord is how much of its trigrams a misspelt word shares with a name's.
	nearWord = 0.45
)

// errTooMuch ends a search that reads too much, errTooMany one that found no place.
var (
	errTooMuch = fmt.Errorf("the search finds too much to be ordered in time: %w", context.DeadlineExceeded)
	errTooMany = fmt.Errorf("too many searches at once: %w", context.DeadlineExceeded)
)

// Agents lists the newest state of the agents that match, in pages. Without Text every
// chain is read in order by its own index and the heads are merged, so that a page costs
// the same wherever it is. With Text all matches are put in order, best ones first by
// default; of what tens of thousands of documents hold not all are looked into: exact
// names and names first. Lists hold no metadata, no more than 2 KiB of a URI, the first ten
// problems of a document, and of a registration no unknown members and only the head of
// a long one. It fails with context.DeadlineExceeded where a page takes the database more
// than three seconds, or too many others search; what takes long to count is counted in part.
func Agents(ctx context.Context, db *store.DB, f AgentFilter) (found Found, err error) {
	order, err := f.order()
	if err != nil {
		return found, err
	}
	if err := errors.Join(f.check(), store.CheckLimit(f.Limit)); err != nil {
		return found, err
	}
	question, err := f.question()
	if err != nil {
		return found, err
	}
	from, going, err := store.DecodeCursor[agentsPos](question, f.After)
	if err != nil {
		return found, err
	}
	modes := matches(f.Text)
	if going {
		if !slices.Contains(modes, from.Match) {
			return found, store.BadCursor()
		}
		modes = []Match{from.Match}
	}
	err = searching(ctx, db, f, func(ctx context.Context, tx pgx.Tx, chains []*chaindb.ChainView) error {
		for _, c := range chains {
			found.AsOf = append(found.AsOf, c.Latest())
		}
		deadline := time.Now().Add(searchTimeout)
		together, cancel := context.WithDeadline(ctx, deadline.Add(searchGrace))
		defer cancel()
		for _, mode := range modes {
			if err := boundStatements(ctx, tx, time.Until(deadline)); err != nil {
				return err
			}
			q, err := f.query(together, tx, mode)
			if err != nil {
				return err
			}
			found.Match = mode
			entries, err := found.page(together, tx, q, order, chains, from, f.Limit, question)
			if err == nil && entries == 0 && q.match.widen() {
				entries, err = found.page(together, tx, q, order, chains, from, f.Limit, question)
			}
			if err != nil {
				return err
			}
			matched := entries > 0 || going
			if !matched && q.match != nil && q.late { // agents may be left out that have the words
				c, err := q.count(together, tx, order, chains)
				if err != nil {
					return err
				}
				matched = c.AtLeast
			}
			if !matched && mode != "" && order.join != "" { // agents have the words, and the order leaves them out
				if matched, err = q.any(together, tx, chains); err != nil {
					return err
				}
			}
			if !matched && mode != modes[len(modes)-1] {
				continue
			}
			if !matched {
				found.Match = ""
			}
			return found.count(ctx, tx, q, order, chains)
		}
		return nil
	})
	return found, err
}

// page reads a page and gives how many agents it has.
func (f *Found) page(ctx context.Context, tx pgx.Tx, q *agentQuery, o agentOrder, chains []*chaindb.ChainView, from agentsPos, limit int, question string) (int, error) {
	streams, err := q.page(ctx, tx, o, chains, from.Chains, limit)
	if err != nil {
		return 0, err
	}
	entries, after, more := mergeStreams(streams, limit, o.desc, from.Chains)
	if more {
		if f.Next, err = store.EncodeCursor(question, agentsPos{f.Match, after}); err != nil {
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

// errUncounted ends a list of which everything is known but how many there are.
var errUncounted = errors.New("counting takes too long")

// count is the last statement of a list: what it takes too long to count is at least as
// many as the page shows.
func (f *Found) count(ctx context.Context, tx pgx.Tx, q *agentQuery, o agentOrder, chains []*chaindb.ChainView) error {
	err := boundStatements(ctx, tx, countTimeout)
	if err != nil {
		return err
	}
	if f.Total, err = q.count(ctx, tx, o, chains); isCanceled(err) && ctx.Err() == nil {
		f.Total = Count{Value: int64(len(f.Items)), AtLeast: true}
		return errUncounted
	}
	return err
}

// boundStatements bounds each further statement of a transaction; errTooMuch without time left.
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
	err = tx.QueryRow(ctx, fmt.Sprintf("%s select exists (select from %s where true%s)", with, from, q.where), q.withArgs(chains)...).Scan(&found)
	return found, err
}

func isCanceled(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "57014"
}

// count counts to one more than maxCounted.
func (q *agentQuery) count(ctx context.Context, tx pgx.Tx, o agentOrder, chains []*chaindb.ChainView) (c Count, err error) {
	with, from := q.source(false)
	matching := fmt.Sprintf(`select from unnest($1::bigint[]) as k(chain_id) cross join lateral (
		select from %s%s where a.chain_id = k.chain_id%s limit %d) a`, from, o.join, q.where, maxCounted+1)
	if q.match != nil {
		what := ""
		if !q.unfolded {
			what = "distinct " + foldKey
		}
		matching = fmt.Sprintf("select %s from %s%s where true%s", what, from, o.join, q.where)
	}
	var hits int
	err = tx.QueryRow(ctx, fmt.Sprintf("%s select count(*), %s from (%s limit %d) m", with, q.hitCount(), matching, maxCounted+1),
		q.withArgs(chains)...).Scan(&c.Value, &hits)
	return c.bounded(hits), err
}

// bounded is what is known when so many documents were looked into.
func (c Count) bounded(hits int) Count {
	return Count{min(c.Value, maxCounted), c.Value > maxCounted || hits >= maxHits}
}

// searchSlots has a place for every search under way.
type searchSlots chan struct{}

// newSearchSlots lets a third of the readers search.
func newSearchSlots(db *store.DB) *searchSlots {
	slots := make(searchSlots, max(1, db.Readers().Config().MaxConns/3))
	return &slots
}

// searching runs list on one snapshot in which no statement may take long. Searches use no
// more than a part of the readers: those who ask for something by its id do not wait
// behind them.
func searching(ctx context.Context, db *store.DB, f AgentFilter, list func(context.Context, pgx.Tx, []*chaindb.ChainView) error) error {
	if !f.IsPlain() {
		slots := *store.Kept(db, func() *searchSlots { return newSearchSlots(db) })
		waited := time.NewTimer(searchTimeout)
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
		chains, err := chainsOf(ctx, tx, f.ChainIDs)
		if err != nil {
			return err
		}
		if err := boundStatements(ctx, tx, searchTimeout); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, fmt.Sprintf("set local jit = off; set local pg_trgm.strict_word_similarity_threshold = %g", nearWord))
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

// chainsOf loads the chains asked for, all for nil. A missing one is
// repute.ErrNotFound: an empty list would look like a chain without agents.
func chainsOf(ctx context.Context, tx pgx.Tx, ids []uint64) ([]*chaindb.ChainView, error) {
	chains, err := chaindb.ReadChains(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if !slices.ContainsFunc(chains, func(c *chaindb.ChainView) bool { return c.ID == id }) {
			return nil, chaindb.MissingChain(id)
		}
	}
	return chains, nil
}

func inOrder(ctx context.Context, tx pgx.Tx, ids []repute.AgentID) ([]repute.Agent, error) {
	agents, err := query.ReadAgents(ctx, tx, ids, false)
	if err != nil {
		return nil, err
	}
	out := make([]repute.Agent, 0, len(ids))
	for _, id := range ids {
		out = append(out, *agents[store.KeyOf(id)])
	}
	return out, nil
}

// checkText says what is wrong with a text to search for, and gives it trimmed.
func checkText(s string) (string, error) {
	const hint = "two or more letters or digits in one word, e.g. weather"
	if !utf8.ValidString(s) {
		return "", repute.Invalid("q", "not UTF-8", hint)
	}
	if utf8.RuneCountInString(s) > maxSearchLength {
		return "", repute.Invalid("q", fmt.Sprintf("longer than %d characters", maxSearchLength), "fewer words")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) && !unicode.IsSpace(r) }) {
		return "", repute.Invalid("q", "holds a control character", hint)
	}
	s = searchtext.Folded(s, maxSearchFolded)
	if longestWord(s) < searchtext.MinSearchText && !isAgentID(s) && !searchtext.IsPlace(s) {
		return "", repute.Invalid("q", "no word of it has two letters or digits", hint)
	}
	if len(strings.Fields(s)) > maxSearchWords {
		return "", repute.Invalid("q", fmt.Sprintf("more than %d words", maxSearchWords), "fewer words")
	}
	return s, nil
}

// checkValue says what is wrong with a value to filter by, and gives it as it is stored.
func checkValue(field, s string) (string, error) {
	if s == "" {
		return "", nil
	}
	v := searchtext.Lowered(s, len(s)+utf8.UTFMax)
	if v == "" || len(v) > searchtext.MaxSearchValue || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return "", repute.Invalid(field, "not a value that is searched", fmt.Sprintf("1 to %d bytes of text, e.g. one of /agents/facets; values of a list are divided by commas", searchtext.MaxSearchValue))
	}
	return v, nil
}

// checkList reads a list divided by commas; nil for "".
func checkList(field, s string) (values []string, err error) {
	if s == "" {
		return nil, nil
	}
	parts := strings.Split(s, ",")
	if len(parts) > maxSearchWords {
		return nil, repute.Invalid(field, fmt.Sprintf("more than %d values", maxSearchWords), "fewer values")
	}
	for _, part := range parts {
		v, err := checkValue(field, cmp.Or(part, " "))
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}
