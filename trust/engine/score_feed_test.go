package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/changedata"
	"repute/store/column"
	"repute/store/query"
)

// consumer follows the change feed and keeps the scores that it tells.
type consumer struct {
	filter             store.ChangeFilter
	since              string
	provisional, final map[repute.TokenID]*changedata.Standing
	hidden, told       int // changes that took a score away, and all of them
}

func newConsumer(filter store.ChangeFilter) *consumer {
	return &consumer{filter: filter, provisional: map[repute.TokenID]*changedata.Standing{},
		final: map[repute.TokenID]*changedata.Standing{}}
}

// follow reads pages until the newest change was looked at.
func (c *consumer) follow(t *testing.T, db *store.DB, page int) {
	t.Helper()
	var newest string
	ok(t, db.Pool().QueryRow(t.Context(),
		"select coalesce((select xid::text || '-' || seq from changes order by xid desc, seq desc limit 1), '')").Scan(&newest))
	for began := time.Now(); c.since != newest; {
		list, next, err := db.Changes(t.Context(), c.since, page, c.filter)
		ok(t, err)
		for i := range list {
			c.take(t, &list[i])
		}
		if c.filter.Final && next == c.since { // the rest is not final yet
			return
		}
		if c.since = next; time.Since(began) > patience {
			t.Fatalf("the feed stays at %s, before %s", c.since, newest)
		}
	}
}

// take applies a change.
func (c *consumer) take(t *testing.T, change *store.Change) {
	t.Helper()
	s, err := changedata.ScoreOf(change)
	ok(t, err)
	if s == nil {
		return
	}
	known := c.provisional
	if s.Mode == changedata.Final {
		known = c.final
	}
	id := *change.TokenID
	was := known[id]
	if (was == nil) != (s.Old == nil) || was != nil && *was != *s.Old {
		t.Errorf("change %s of agent %s: was %+v, the feed told %+v", change.Cursor, id.Dec(), s.Old, was)
	}
	if s.New != nil && s.Old != nil && *s.New == *s.Old {
		t.Errorf("change %s of agent %s changes nothing: %+v", change.Cursor, id.Dec(), s.New)
	}
	if known[id] = s.New; s.New == nil {
		c.hidden++
	}
	c.told++
}

// standingOf is what a list shows of a score, nil for that of all agents without ratings.
func standingOf(s *repute.Score) *changedata.Standing {
	if s.Run == 0 {
		return nil
	}
	points := func(p repute.Points) float64 { return math.Round(float64(p)) / 1000 }
	return &changedata.Standing{Status: s.Status, Score: points(s.Score), Low: points(s.Low), High: points(s.High),
		Tier: s.Tier}
}

// equalStandings compares two standings.
func equalStandings(a, b *changedata.Standing) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// standing is the score of an agent that lists show by what the feed told.
func (c *consumer) standing(id repute.TokenID) *changedata.Standing {
	if s := c.provisional[id]; s != nil {
		return s
	}
	return c.final[id]
}

// compare compares, in one snapshot of the database, the scores of lists with those that the whole feed tells.
func (l *ledger) compare(t *testing.T, db *store.DB, when string) (told *consumer) {
	t.Helper()
	var ids []repute.AgentID
	for n := range l.state().owners {
		ids = append(ids, repute.AgentID{ChainID: 9, Registry: identity, TokenID: token(uint64(n))})
	}
	told = newConsumer(store.ChangeFilter{})
	ok(t, chaindb.View(t.Context(), db, "compare", func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `select xid::text || '-' || seq, kind, token_id, data from changes
			where kind = 'score.changed' order by xid, seq`)
		if err != nil {
			return err
		}
		var c store.Change
		var id column.TokenNum
		if _, err = pgx.ForEachRow(rows, []any{&c.Cursor, &c.Kind, &id, &c.Data}, func() error {
			of := repute.TokenID(id)
			c.TokenID = &of
			told.take(t, &c)
			return nil
		}); err != nil {
			return err
		}
		agents, err := query.ReadAgents(ctx, tx, ids, false)
		for _, a := range agents {
			if got, want := standingOf(&a.Score), told.standing(a.ID.TokenID); !equalStandings(got, want) {
				t.Errorf("%s: agent %s: lists show %+v, the feed told %+v", when, a.ID.Short(), got, want)
			}
		}
		return err
	}))
	if t.Failed() {
		t.FailNow()
	}
	return told
}

// A reader that follows the feed has the scores that lists show, at every moment: while the chain is reorganized, also
// back to blocks that it had before, while epochs end, and while engines come and go.
func TestFeedTellsTheScoresOfLists(t *testing.T) {
	t.Parallel()
	hidden := 0
	for seed := range histories(t) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			hidden += followHistory(t, 100+seed)
		})
	}
	if hidden == 0 {
		t.Error("no score was taken away: the test shows less than it should")
	}
}

// followHistory follows one random history, and returns how many scores were taken away.
func followHistory(t *testing.T, seed uint64) int {
	t.Helper()
	l := newLedger(seed)
	db, url := l.fresh(t)
	stop, other := start(t, db), start(t, open(t, url))
	all, final := newConsumer(store.ChangeFilter{}), newConsumer(store.ChangeFilter{Final: true})
	var known []mined // blocks that were replaced
	var finalized uint64
	for step := range 40 {
		tip := l.tip().Number
		switch {
		case known != nil && l.rng.IntN(2) == 0: // the former blocks return
			l.blocks, known = known, nil
		case tip > finalized+2 && l.rng.IntN(3) == 0:
			known = slices.Clone(l.blocks)
			l.fork(finalized + l.rng.Uint64N(tip-finalized))
			l.grow(1 + l.rng.IntN(3))
		default:
			known = nil
			l.grow(1 + l.rng.IntN(6))
		}
		if known == nil {
			finalized = max(finalized, l.tip().Number-min(l.tip().Number, 6))
		}
		l.store(t, db, finalized)
		if step == 20 {
			other() // one of the two engines is left
		}
		for range 1 + l.rng.IntN(4) {
			l.compare(t, db, fmt.Sprintf("step %d", step))
			time.Sleep(time.Duration(l.rng.IntN(60)) * time.Millisecond)
		}
	}
	finalized = l.tip().Number
	l.store(t, db, finalized)
	settle(t, db, 9, finalized/10*10)
	stop()
	told := l.compare(t, db, "at the end")
	all.follow(t, db, 1+l.rng.IntN(50))
	final.follow(t, db, 50)
	final.compareFinals(t, l, db)
	if len(final.provisional) > 0 || all.told != told.told || all.told < 10 {
		t.Errorf("%d changes of scores, of which pages have %d; final ones are of %d provisional scores", told.told,
			all.told,
			len(final.provisional))
	}
	for id := range told.provisional {
		if !equalStandings(all.standing(id), told.standing(id)) {
			t.Errorf("agent %s: pages told %+v, want %+v", id.Dec(), all.standing(id), told.standing(id))
		}
	}
	return told.hidden
}

// compareFinals compares the final scores that the feed told with those that the index answers.
func (c *consumer) compareFinals(t *testing.T, l *ledger, db *store.DB) {
	t.Helper()
	for n := range l.state().owners {
		id := repute.AgentID{ChainID: 9, Registry: identity, TokenID: token(uint64(n))}
		s, _, err := query.ScoreOf(t.Context(), db, id, repute.At{Finality: repute.Finalized})
		if err != nil && !errors.Is(err, repute.ErrNotFound) {
			t.Fatal(err)
		}
		if got, want := standingOf(&s), c.final[id.TokenID]; !equalStandings(got, want) {
			t.Errorf("agent %s: the final score is %+v, the feed told %+v", id.Short(), got, want)
		}
	}
}
