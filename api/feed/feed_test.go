package feed_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"repute/api/feed"
	"repute/internal/pgtest"
	"repute/store"
)

// fataler is what tests and properties have in common.
type fataler interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func ok(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T) (*store.DB, *feed.Feed) {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{MaxConns: 12})
	ok(t, err)
	t.Cleanup(db.Close)
	return db, feed.New(db, slog.New(slog.DiscardHandler))
}

// add adds n changes of a chain to the feed in one transaction, and returns the cursor of the last one.
func add(t fataler, db *store.DB, chain, n int, kind string) (last string) {
	t.Helper()
	ok(t, db.Pool().QueryRow(context.Background(), `
		with made as (insert into changes (chain_id, kind, block, log_index, token_id, data)
			select $1, $2, 0, 0, 7, '{}' from generate_series(1, $3) returning xid, seq)
		select xid::text || '-' || seq from made order by seq desc limit 1`, chain, kind, n).Scan(&last))
	return last
}

// errEnd ends a follower.
var errEnd = errors.New("end")

// until follows until the cursor was passed, and returns the cursors of all changes that were sent.
func until(t fataler, f *feed.Feed, since, last string, filter store.ChangeFilter) (got []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	end, err := store.ParseChangeCursor(last)
	ok(t, err)
	err = f.Follow(ctx, since, filter, func(list []store.Change, next string) error {
		for _, c := range list {
			got = append(got, c.Cursor)
		}
		at, err := store.ParseChangeCursor(next)
		if err != nil || !at.Before(end) {
			return errors.Join(errEnd, err)
		}
		return nil
	})
	if !errors.Is(err, errEnd) {
		t.Fatalf("followed from %q to %q: %v", since, last, err)
	}
	return got
}

// TestNewestStays: the newest change that a follower may have got is known after the follower has left. Answers are
// kept under it, so that somebody who heard of a change reads no answer from before.
func TestNewestStays(t *testing.T) {
	t.Parallel()
	db, f := open(t)
	if at := f.Newest(); at != "" {
		t.Errorf("%q before the first follower", at)
	}
	first := add(t, db, 1, 1, "feedback.given")
	until(t, f, "", first, store.ChangeFilter{})
	if at := f.Newest(); at != first {
		t.Errorf("%q after a follower got %q and left", at, first)
	}
	second := add(t, db, 1, 1, "feedback.given")
	until(t, f, first, second, store.ChangeFilter{ChainID: 1})
	if at := f.Newest(); at != second {
		t.Errorf("%q after a follower got %q and left", at, second)
	}
}

// TestNewestIsOfTheTable: a cursor that a caller made up does not become the newest one, which would stay it for ever.
func TestNewestIsOfTheTable(t *testing.T) {
	t.Parallel()
	db, f := open(t)
	first := add(t, db, 1, 1, "feedback.given")
	for _, final := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		err := f.Follow(ctx, "999999999999-1", store.ChangeFilter{Final: final}, func([]store.Change, string) error {
			return errEnd
		})
		cancel()
		if errors.Is(err, errEnd) {
			t.Errorf("final %t: something came after a cursor that is none", final)
		}
	}
	until(t, f, "", first, store.ChangeFilter{})
	if at := f.Newest(); at != first {
		t.Errorf("the newest change is %q, want %q", at, first)
	}
}

// TestFollow: whatever a follower selects and wherever it begins, it gets each change once and in order, also one that
// reads so slowly that what it has not read is no longer kept in memory.
func TestFollow(t *testing.T) {
	t.Parallel()
	db, f := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := add(t, db, 1, 1, "feedback.given")
	reading, resume := make(chan struct{}, 1), make(chan struct{})
	var slow []string
	ended := make(chan error, 1)
	last := ""
	go func() { // keeps the reader of the table running, and reads nothing for a while
		ended <- f.Follow(ctx, begin, store.ChangeFilter{}, func(list []store.Change, next string) error {
			select {
			case reading <- struct{}{}:
			default:
			}
			<-resume
			for _, c := range list {
				slow = append(slow, c.Cursor)
			}
			if next == last {
				return errEnd
			}
			return nil
		})
	}()
	add(t, db, 1, 1, "feedback.given")
	select {
	case <-reading:
	case <-time.After(time.Minute):
		t.Fatal("the slow follower got nothing")
	}
	kinds := []string{"feedback.given", "document.updated", "score.changed"}
	rapid.Check(t, func(t *rapid.T) {
		from := begin
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			last = add(t, db, rapid.IntRange(1, 2).Draw(t, "chain"), rapid.IntRange(1, 40).Draw(t, "changes"),
				rapid.SampledFrom(kinds).Draw(t, "kind"))
			if rapid.Bool().Draw(t, "begin here") {
				from = last
			}
		}
		last = add(t, db, 1, 1, "feedback.given") // so that there is something behind each place
		filter := store.ChangeFilter{ChainID: rapid.Uint64Range(0, 2).Draw(t, "only chain")}
		if only := rapid.SampledFrom(append(kinds, "")).Draw(t, "only kind"); only != "" {
			filter.Kinds = []string{only}
		}
		if got, want := until(t, f, from, last, filter), stored(t, db, from, filter); !slices.Equal(got, want) {
			t.Fatalf("after %s: %d changes, want %d", from, len(got), len(want))
		}
	})
	add(t, db, 2, 11_000, "score.changed")
	last = add(t, db, 1, 1, "feedback.given")
	until(t, f, begin, last, store.ChangeFilter{ChainID: 1})
	close(resume)
	select {
	case err := <-ended:
		if !errors.Is(err, errEnd) {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the slow follower did not catch up")
	}
	if want := stored(t, db, begin, store.ChangeFilter{}); !slices.Equal(slow, want) {
		t.Errorf("the slow follower got %d changes, want %d", len(slow), len(want))
	}
}

// stored returns the cursors after a cursor that a filter selects, as the table has them.
func stored(t fataler, db *store.DB, since string, filter store.ChangeFilter) (want []string) {
	t.Helper()
	at, err := store.ParseChangeCursor(since)
	ok(t, err)
	rows, err := db.Pool().Query(context.Background(), `select xid::text || '-' || seq from changes
		where ($1 = 0 or chain_id = $1) and ($2::text[] is null or kind = any($2)) order by xid, seq`,
		int64(filter.ChainID), filter.Kinds)
	ok(t, err)
	defer rows.Close()
	for rows.Next() {
		var text string
		ok(t, rows.Scan(&text))
		c, err := store.ParseChangeCursor(text)
		ok(t, err)
		if at.Before(c) {
			want = append(want, text)
		}
	}
	ok(t, rows.Err())
	return want
}

// TestFollowEnds: a follower ends with its context, and says why it cannot follow.
func TestFollowEnds(t *testing.T) {
	t.Parallel()
	_, f := open(t)
	for _, final := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			ended <- f.Follow(ctx, "", store.ChangeFilter{Final: final}, func([]store.Change, string) error { return nil })
		}()
		cancel()
		select {
		case err := <-ended:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("final %t: %v", final, err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("final %t: follows on", final)
		}
		err := f.Follow(t.Context(), "no cursor", store.ChangeFilter{Final: final},
			func([]store.Change, string) error { return errEnd })
		if err == nil || errors.Is(err, errEnd) {
			t.Error(fmt.Errorf("final %t: a text that is no cursor: %w", final, err))
		}
	}
}
