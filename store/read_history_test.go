package store_test

import (
	"context"
	"encoding/hex"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
	"repute/store/eventdb"
	"repute/store/historydb"
)

// TestHistoryReplays: whatever happened on the way to a chain, the changes of an agent up to a block, played from the
// oldest one on, make what the contracts had at that block, each of them replaces what was there before, and the log
// that it names can have made it. Pages of any size make the same list, in either order.
func TestHistoryReplays(t *testing.T) {
	t.Parallel()
	db := testDB(t)
	var chains atomic.Uint64
	rapid.Check(t, func(t *rapid.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		f := follower{db: db, chain: chains.Add(1), ledger: newLedger()}
		ok(t, chaindb.AddChain(ctx, db, testChain(f.chain)))
		for range rapid.IntRange(1, 7).Draw(t, "steps") {
			f.step(ctx, t)
		}
		if len(f.ledger.blocks) == 0 {
			return
		}
		past := f.ledger.blocks[rapid.IntRange(0, len(f.ledger.blocks)-1).Draw(t, "block")]
		head := f.ledger.blocks[len(f.ledger.blocks)-1]
		for agent := range head.after.agents {
			checkHistory(ctx, t, &f, agent, latest, head.after)
			if agent < len(past.after.agents) {
				checkHistory(ctx, t, &f, agent, at(past.Number), past.after)
			}
		}
	})
}

// checkHistory replays the history of an agent in a view and compares it with a state of the contracts.
func checkHistory(ctx context.Context, t *rapid.T, f *follower, agent int, view repute.At, want *state) {
	t.Helper()
	id := repute.AgentID{ChainID: f.chain, Registry: registries.Identity, TokenID: token(uint64(agent))}
	limit := rapid.IntRange(1, 9).Draw(t, "limit")
	changes := allChanges(ctx, t, f.db, id, historydb.Filter{OldestFirst: true, At: view, Limit: limit})
	newest := allChanges(ctx, t, f.db, id, historydb.Filter{At: view, Limit: limit})
	slices.Reverse(newest)
	if !reflect.DeepEqual(changes, newest) {
		t.Fatalf("agent %d: oldest first\n%+v\nnewest first, reversed\n%+v", agent, changes, newest)
	}
	got := map[string]string{}
	for _, c := range changes {
		slot := string(c.Kind)
		if c.Key != nil {
			slot += string(c.Key.Bytes)
		}
		if c.Kind == historydb.KindOperator {
			slot += textOf(c.Old) + textOf(c.New)
		}
		if before, was := got[slot]; was != (c.Old != nil) || was && before != textOf(c.Old) {
			t.Fatalf("agent %d: %s %q replaces %q, not %+v", agent, c.Kind, slot, before, c.Old)
		}
		if delete(got, slot); c.New != nil {
			got[slot] = textOf(c.New)
		}
		checkLog(t, f.ledger, agent, c)
	}
	equal(t, "agent by its history", got, historyState(want, agent))
}

// allChanges reads all pages.
func allChanges(ctx context.Context, t failer, db *store.DB, id repute.AgentID,
	f historydb.Filter) (all []historydb.Change) {
	t.Helper()
	for {
		page, err := historydb.History(ctx, db, id, f)
		ok(t, err)
		if all = append(all, page.Items...); page.Next == "" {
			return all
		}
		f.After = page.Next
	}
}

// textOf is a value in the form of historyState.
func textOf(v *historydb.Value) string {
	if v == nil {
		return ""
	}
	return string(v.Bytes)
}

// headOf is a text as a history shows it.
func headOf(s string) string {
	var partial bool
	return string(column.Head([]byte(s[:min(len(s), column.MaxListed+1)]), column.MaxListed, &partial))
}

// historyState is what an agent has by the contracts.
func historyState(s *state, agent int) map[string]string {
	a := s.agents[agent]
	out := map[string]string{}
	for kind, value := range map[historydb.Kind]string{historydb.KindOwner: string(a.owner[:]),
		historydb.KindWallet: string(a.wallet[:]), historydb.KindApproved: string(a.approved[:]),
		historydb.KindURI: headOf(a.uri)} {
		if value != "" && value != string(nobody[:]) {
			out[string(kind)] = value
		}
	}
	for k, v := range a.metadata {
		out[string(historydb.KindMetadata)+headOf(k)] = headOf(v)
	}
	for pair, on := range s.operators {
		if on && pair[0] == a.owner {
			out[string(historydb.KindOperator)+string(pair[1][:])] = string(pair[1][:])
		}
	}
	return out
}

// checkLog expects the log of a change to be of the agent, or of all agents of an owner, and of a kind that can make
// such a change.
func checkLog(t failer, l *ledger, agent int, c historydb.Change) {
	t.Helper()
	kinds := map[historydb.Kind][]repute.EventKind{
		historydb.KindOwner:    {repute.KindTransfer},
		historydb.KindWallet:   {repute.KindTransfer, repute.KindMetadataSet, repute.KindRegistered},
		historydb.KindApproved: {repute.KindTransfer, repute.KindApproval},
		historydb.KindURI:      {repute.KindRegistered, repute.KindURIUpdated},
		historydb.KindMetadata: {repute.KindMetadataSet},
		historydb.KindOperator: {repute.KindApprovalForAll, repute.KindTransfer},
	}
	b := l.blocks[c.At.Block-l.genesis.Number-1]
	if int(c.At.LogIndex) >= len(b.records) {
		t.Fatalf("agent %d: %s by log %d of a block with %d", agent, c.Kind, c.At.LogIndex, len(b.records))
	}
	r := b.records[c.At.LogIndex]
	of, named := repute.AgentOf(r.Event)
	if !slices.Contains(kinds[c.Kind], r.Event.Kind()) || named && of != token(uint64(agent)) ||
		r.Log.TxHash != c.At.TxHash ||
		!c.At.Time.Equal(b.Time) {
		t.Fatalf("agent %d: %s by %+v at %+v", agent, c.Kind, r.Event, c.At)
	}
}

// TestHistoryFilters: kinds select, the histories of many agents are those of each, and cursors of other requests and
// made-up ones are refused.
func TestHistoryFilters(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 71)
	w.grow(60)
	w.store(t, db, w.tip().Number)
	ctx := context.Background()
	var ids []repute.AgentID
	for agent := range w.agents {
		ids = append(ids, w.id(agent))
	}
	for _, kinds := range [][]historydb.Kind{nil, {historydb.KindURI}, {historydb.KindMetadata, historydb.KindOwner}} {
		f := historydb.Filter{Kinds: kinds, At: latest, Limit: 3}
		first, err := historydb.HistoryByAgents(ctx, db, ids, f)
		ok(t, err)
		for _, id := range ids {
			all := allChanges(ctx, t, db, id, f)
			for _, c := range all {
				if kinds != nil && !slices.Contains(kinds, c.Kind) {
					t.Errorf("%v: %s", kinds, c.Kind)
				}
			}
			mine := first[column.KeyOf(id)]
			if mine.More != (len(all) > 3) || !reflect.DeepEqual(mine.Items, all[:min(3, len(all))]) {
				t.Errorf("%v: agent %s begins with %+v, among others %+v", kinds, id.Short(),
					all[:min(3, len(all))], mine)
			}
		}
	}
	page, err := historydb.History(ctx, db, ids[0], historydb.Filter{At: latest, Limit: 1})
	ok(t, err)
	for what, f := range map[string]historydb.Filter{
		"another order": {At: latest, Limit: 1, OldestFirst: true, After: page.Next},
		"other kinds":   {At: latest, Limit: 1, Kinds: []historydb.Kind{historydb.KindOwner}, After: page.Next},
		"another view":  {At: at(w.tip().Number), Limit: 1, After: page.Next},
		"no cursor":     {At: latest, Limit: 1, After: "%"},
	} {
		if _, err := historydb.History(ctx, db, ids[0], f); wantField(err) != "cursor" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := historydb.History(ctx, db, ids[1],
		historydb.Filter{At: latest, Limit: 1, After: page.Next}); wantField(err) != "cursor" {
		t.Errorf("of another agent: %v", err)
	}
	if _, err := historydb.History(ctx, db, ids[0],
		historydb.Filter{At: latest, Limit: 1, Kinds: []historydb.Kind{"name"}}); wantField(err) != "kind" {
		t.Errorf("unknown kind: %v", err)
	}
	if _, err := historydb.History(ctx, db, w.id(w.agents), historydb.Filter{At: latest, Limit: 1}); !errors.Is(err,
		repute.ErrNotFound) {
		t.Errorf("unknown agent: %v", err)
	}
}

// spread gives the blocks of a world times that are hours apart, the tenth none.
func (w *world) spread(hours int) {
	times := map[uint64]time.Time{}
	for i := range w.blocks {
		b := &w.blocks[i]
		if b.Time = worldStart.Add(time.Duration(i*hours) * time.Hour); i == 9 {
			b.Time = time.Time{}
		}
		times[b.Number] = b.Time
	}
	for i := range w.records {
		w.records[i].Time = times[w.records[i].Log.BlockNumber]
	}
}

// TestSeriesOfRatings: with every step and in every view, buckets begin where the calendar says, there is one for each,
// and their counts are those of the live ratings; all of them with the undated ones add up to the agent's ratings.
func TestSeriesOfRatings(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 72)
	w.mine(w.mint(person(0))...)
	w.grow(70)
	w.spread(5)
	w.store(t, db, w.tip().Number)
	ctx := context.Background()
	tag := "starred"
	for _, view := range []repute.At{latest, at(130)} {
		block := w.tip().Number
		if view.Finality == "" {
			block = view.Block
		}
		for step, length := range map[historydb.Step]time.Duration{historydb.StepHour: time.Hour,
			historydb.StepDay:  24 * time.Hour,
			historydb.StepWeek: 7 * 24 * time.Hour} {
			for _, only := range []*string{nil, &tag} {
				for agent := range min(w.agents, 4) {
					if w.mintBlock(tokenID(agent)) > block {
						continue
					}
					f := historydb.SeriesFilter{Measure: historydb.MeasureRatings, Every: step, From: worldStart,
						Tag: only, At: view}
					ratings, err := historydb.ReadSeries(ctx, db, w.id(agent), f)
					ok(t, err)
					f.Measure = historydb.MeasureReviewers
					reviewers, err := historydb.ReadSeries(ctx, db, w.id(agent), f)
					ok(t, err)
					w.checkSeries(t, agent, block, length, only, ratings, reviewers)
				}
			}
		}
	}
}

// checkSeries compares two series of an agent with the records.
func (w *world) checkSeries(t *testing.T, agent int, block uint64, length time.Duration, tag *string, ratings,
	reviewers historydb.Series) {
	t.Helper()
	begin := func(at time.Time) time.Time {
		if length == time.Hour {
			return at.Truncate(time.Hour)
		}
		day := time.Date(at.Year(), at.Month(), at.Day(), 0, 0, 0, 0, time.UTC)
		for length > 24*time.Hour && day.Weekday() != time.Monday {
			day = day.AddDate(0, 0, -1)
		}
		return day
	}
	counts, clients, undated := map[time.Time]int64{}, map[time.Time]map[string]bool{}, int64(0)
	for _, r := range w.ratings(tokenID(agent), block) {
		if r.revoked != nil || tag != nil && r.Tag1 != *tag {
			continue
		}
		if r.point.Time.IsZero() {
			undated++
			continue
		}
		b := begin(r.point.Time)
		if counts[b]++; clients[b] == nil {
			clients[b] = map[string]bool{}
		}
		clients[b][r.Client.Hex()] = true
	}
	if ratings.Undated != undated || !ratings.From.Equal(begin(worldStart)) ||
		len(ratings.Points) != len(reviewers.Points) {
		t.Errorf("agent %d: %d undated, not %d; from %s, %d and %d points", agent, ratings.Undated, undated,
			ratings.From,
			len(ratings.Points), len(reviewers.Points))
	}
	for i, p := range ratings.Points {
		if want := ratings.From.Add(time.Duration(i) * length); !p.Start.Equal(want) || !p.Start.Equal(begin(p.Start)) {
			t.Fatalf("agent %d: bucket %d begins at %s, not %s", agent, i, p.Start, want)
		}
		if p.Count != counts[p.Start] || reviewers.Points[i].Count != int64(len(clients[p.Start])) || p.Score != nil {
			t.Errorf("agent %d: %+v and %+v, want %d and %d", agent, p, reviewers.Points[i], counts[p.Start],
				len(clients[p.Start]))
		}
		delete(counts, p.Start)
	}
	if len(counts) > 0 {
		t.Errorf("agent %d: no buckets for %v", agent, slices.Collect(maps.Keys(counts)))
	}
}

// TestSeriesAfterRewind: a series has nothing of what a reorganization took back.
func TestSeriesAfterRewind(t *testing.T) {
	t.Parallel()
	db := testDB(t)
	ctx := ctxOf(t)
	ok(t, chaindb.AddChain(ctx, db, testChain(1)))
	give := func(index uint64) repute.Event {
		return repute.NewFeedback{TokenID: token(0), Client: person(9), Index: index, Value: values[1], Tag1: "starred"}
	}
	l := chainOf(txOf{repute.Transfer{To: person(1), TokenID: token(0)}}, txOf{give(1)}, txOf{give(2)})
	ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
	f := historydb.SeriesFilter{Measure: historydb.MeasureRatings, Every: historydb.StepHour, At: latest}
	id := repute.AgentID{ChainID: 1, Registry: registries.Identity, TokenID: token(0)}
	sum := func() (n int64) {
		s, err := historydb.ReadSeries(ctx, db, id, f)
		ok(t, err)
		for _, p := range s.Points {
			n += p.Count
		}
		return n
	}
	if n := sum(); n != 2 {
		t.Errorf("%d ratings", n)
	}
	l.fork(firstBlock + 1)
	parent := l.head()
	ok(t, eventdb.Rewind(ctx, db, parent, batchOf(1, parent,
		l.extend(txOf{repute.Transfer{From: person(1), To: person(2), TokenID: token(0)}}))))
	if n := sum(); n != 1 {
		t.Errorf("%d ratings after the reorganization", n)
	}
	changes := allChanges(ctx, t, db, id, historydb.Filter{At: latest, Limit: 9,
		Kinds: []historydb.Kind{historydb.KindOwner}})
	if len(changes) != 2 || hex.EncodeToString(changes[0].New.Bytes) != address(person(2)) {
		t.Errorf("owners %+v", changes)
	}
}

// TestSeriesOfScores: the final score of an epoch lasts until the next one, a bucket without one says so, open runs
// and the epochs after the view do not count, and nothing is carried over scores that may have been pruned.
func TestSeriesOfScores(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 73)
	w.mine(w.mint(person(0))...)
	w.grow(40)
	w.spread(6)
	w.store(t, db, w.tip().Number)
	for _, run := range []struct {
		run, block int
		closed     bool
		score      int // 0: none was stored
	}{{1, 105, true, 0}, {2, 110, true, 20_000}, {3, 114, true, 0}, {4, 118, true, -5_000}, {5, 119, true, 7_000},
		{6, 130, false, 90_000}} {
		sqlExec(t, db,
			`insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, block_time, scorer, params, tags, roots, links,
			weights, identities, edges, closed_at) values (7, $1, $1, $2, $2, '', $3, 't', '', '', '', '', '', 0, 0, case when $4 then now() end)`,
			run.run, run.block, worldStart.Add(time.Duration(run.block-100)*6*time.Hour), run.closed)
		if run.score != 0 {
			sqlExec(t, db,
				`insert into trust_finals (chain_id, token_id, run, evidence, status, score, low, high, mean, confidence, tier, facts, result)
				values (7, 0, $1, '', 'rated', $2, $2 - 1000, $2 + 1000, 0, 0, 1, '', '')`, run.run, run.score)
		}
	}
	ctx := context.Background()
	day := func(n int) time.Time { return worldStart.Truncate(24*time.Hour).AddDate(0, 0, n) }
	read := func(from, to int, view repute.At) (out []int64) {
		t.Helper()
		s, err := historydb.ReadSeries(ctx, db, w.id(0),
			historydb.SeriesFilter{Measure: historydb.MeasureScore, Every: historydb.StepDay,
				From: day(from), To: day(to), At: view})
		ok(t, err)
		for _, p := range s.Points {
			switch {
			case p.Score == nil:
				out = append(out, 0)
			case p.Carried:
				out = append(out, -int64(p.Score.Epoch))
			default:
				out = append(out, int64(p.Score.Epoch))
			}
		}
		return out
	}
	// Blocks are four to a day: 110 is of day 2, 118 and 119 are of day 4 or 5, by the time of the first block.
	first := worldStart.Add(60 * time.Hour).Truncate(24 * time.Hour)
	last := worldStart.Add(114 * time.Hour).Truncate(24 * time.Hour)
	for _, c := range []struct {
		from, to int
		view     repute.At
	}{{0, 9, latest}, {3, 9, latest}, {0, 9, at(117)}} {
		got := read(c.from, c.to, c.view)
		for i, epoch := range got {
			start := day(c.from + i)
			want := int64(0)
			switch {
			case start.Equal(last) && c.view == latest:
				want = 5
			case start.After(last) && c.view == latest:
				want = -5
			case start.Equal(first):
				want = 2
			case start.After(first):
				want = -2
			}
			if fourth := worldStart.Add(108 * time.Hour).Truncate(24 * time.Hour); start.Equal(fourth) &&
				!fourth.Equal(last) && c.view == latest {
				want = 4
			}
			if epoch != want {
				t.Errorf("%+v: %s has epoch %d, want %d, of %v", c, start, epoch, want, got)
			}
		}
	}
	sqlExec(t, db, "insert into cursors (job, chain_id, position) values ('pruned finals', 7, 4)")
	for i, epoch := range read(0, 9, latest) {
		if start := day(i); start.After(first) && start.Before(last) && epoch == -2 {
			t.Errorf("%s carries epoch 2, of which others may have been pruned", start)
		}
	}
}

// TestSeriesBounds: what is asked wrongly is refused by the name of the parameter, with the fix.
func TestSeriesBounds(t *testing.T) {
	t.Parallel()
	db, w := open(t), newWorld(7, 100, 74)
	w.mine(w.mint(person(0))...)
	w.store(t, db, w.tip().Number)
	ctx := context.Background()
	tag := "t"
	year := worldStart.AddDate(1, 0, 0)
	for what, c := range map[string]struct {
		f     historydb.SeriesFilter
		field string
	}{
		"no measure": {historydb.SeriesFilter{Measure: "mean", Every: historydb.StepDay}, "measure"},
		"no step":    {historydb.SeriesFilter{Measure: historydb.MeasureScore, Every: "month"}, "every"},
		"tag of a score": {historydb.SeriesFilter{Measure: historydb.MeasureScore, Every: historydb.StepDay,
			Tag: &tag}, "tag"},
		"too many": {historydb.SeriesFilter{Measure: historydb.MeasureRatings, Every: historydb.StepHour,
			From: worldStart, To: year}, "from"},
		"backwards": {historydb.SeriesFilter{Measure: historydb.MeasureRatings, Every: historydb.StepDay,
			From: year, To: worldStart}, "from"},
		"empty": {historydb.SeriesFilter{Measure: historydb.MeasureRatings, Every: historydb.StepWeek,
			From: worldStart, To: worldStart}, "from"},
		"after the chain": {historydb.SeriesFilter{Measure: historydb.MeasureRatings, Every: historydb.StepDay,
			From: year}, "from"},
		"an unknown view": {historydb.SeriesFilter{Measure: historydb.MeasureRatings, Every: historydb.StepDay,
			At: at(5)}, "at"},
	} {
		if c.f.At == (repute.At{}) {
			c.f.At = latest
		}
		if _, err := historydb.ReadSeries(ctx, db, w.id(0), c.f); wantField(err) != c.field {
			t.Errorf("%s: %v, want one about %s", what, err, c.field)
		}
	}
	most := historydb.SeriesFilter{Measure: historydb.MeasureRatings, Every: historydb.StepHour, At: latest,
		From: worldStart.Truncate(time.Hour), To: worldStart.Truncate(time.Hour).Add(historydb.MaxBuckets * time.Hour)}
	s, err := historydb.ReadSeries(ctx, db, w.id(0), most)
	ok(t, err)
	if len(s.Points) != historydb.MaxBuckets || most.Most() != historydb.MaxBuckets {
		t.Errorf("%d points, at most %d were announced", len(s.Points), most.Most())
	}
}
