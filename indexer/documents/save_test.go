package documents

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"repute"
	"repute/store/docdb"
)

// What comes while a transaction is under way is stored together, each URI once in a
// transaction, and everybody hears of the own document alone.
func TestSaverStoresTogether(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	first, goOn := make(chan struct{}, savesTogether), make(chan struct{})
	var mu sync.Mutex
	var sizes []int
	s := &saver{save: func(_ context.Context, results []docdb.FetchResult) error {
		mu.Lock()
		sizes = append(sizes, len(results))
		begun := len(sizes) <= savesTogether
		mu.Unlock()
		if begun {
			first <- struct{}{}
			<-goOn
		}
		seen := map[int64]bool{}
		for _, r := range results {
			if seen[r.URIID] {
				t.Errorf("uri %d comes twice", r.URIID)
			}
			if seen[r.URIID] = true; r.URIID == 13 {
				return broken
			}
		}
		return nil
	}}
	told := map[int64][]<-chan error{}
	add := func(id int64) { told[id] = append(told[id], s.add(t.Context(), docdb.FetchResult{URIID: id})) }
	for id := range int64(savesTogether) {
		add(100 + id)
		<-first
	}
	for id := range int64(20) {
		add(id)
	}
	add(5)
	close(goOn)
	for id, all := range told {
		for _, c := range all {
			if err := <-c; (err != nil) != (id == 13) || err != nil && !errors.Is(err, broken) {
				t.Errorf("uri %d: %v", id, err)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	// Two alone, then the twenty together, each of them alone after that failed, and
	// the one that came twice.
	if len(sizes) > savesTogether+1+20+1 {
		t.Errorf("transactions of %v documents", sizes)
	}
}

// While the database is unavailable, or hangs, documents are not tried one by one.
func TestSaveAllWhileAway(t *testing.T) {
	t.Parallel()
	for _, away := range []error{repute.ErrUnavailable, fmt.Errorf("save documents: %w", context.DeadlineExceeded)} {
		calls := 0
		s := &saver{save: func(ctx context.Context, _ []docdb.FetchResult) error {
			if end, limited := ctx.Deadline(); !limited || time.Until(end) > saveLimit {
				t.Errorf("no limit of %s", saveLimit)
			}
			calls++
			return away
		}}
		errs := s.saveAll(t.Context(), make([]docdb.FetchResult, 3))
		if calls != 1 || len(errs) != 3 || !errors.Is(errs[0], away) || !errors.Is(errs[2], away) {
			t.Errorf("%d calls, %v", calls, errs)
		}
	}
}

// A database that goes away in the middle is not tried for the rest.
func TestSaveAllUntilAway(t *testing.T) {
	t.Parallel()
	calls := 0
	s := &saver{save: func(_ context.Context, results []docdb.FetchResult) error {
		if calls++; len(results) > 1 {
			return errors.New("broken")
		}
		return context.DeadlineExceeded
	}}
	errs := s.saveAll(t.Context(), make([]docdb.FetchResult, 50))
	if calls != 2 || !unavailable(errs[49]) {
		t.Errorf("%d calls, %v", calls, errs)
	}
}

// A document that breaks the program while it is stored is noted as such, and the others
// of its batch are stored.
func TestSaverOutlivesPanic(t *testing.T) {
	t.Parallel()
	var stored sync.Map
	s := &saver{
		broken: func(r docdb.FetchResult) docdb.FetchResult {
			return docdb.FetchResult{URIID: r.URIID, Reason: reasonInternal}
		},
		save: func(_ context.Context, results []docdb.FetchResult) error {
			for _, r := range results {
				if r.URIID == 2 && r.Reason == "" {
					panic("a stranger's document")
				}
			}
			for _, r := range results {
				stored.Store(r.URIID, r.Reason)
			}
			return nil
		},
	}
	for i, err := range s.saveAll(t.Context(), []docdb.FetchResult{{URIID: 1}, {URIID: 2}, {URIID: 3}}) {
		want := ""
		if i == 1 {
			want = reasonInternal
		}
		if got, _ := stored.Load(int64(i + 1)); got != want || errors.Is(err, errBroken) != (i == 1) {
			t.Errorf("uri %d: stored with reason %v, %v", i+1, got, err)
		}
	}
	if err := <-s.add(t.Context(), docdb.FetchResult{URIID: 2}); !errors.Is(err, errBroken) {
		t.Errorf("by itself: %v", err)
	}
}
