package documents

import (
	"context"
	"errors"
	"sync"
	"testing"

	"repute"
	"repute/store"
)

// What comes while a transaction is under way is stored together, each URI once in a
// transaction, and everybody hears of the own document alone.
func TestSaverStoresTogether(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	first, goOn := make(chan struct{}, savesTogether), make(chan struct{})
	var mu sync.Mutex
	var sizes []int
	s := &saver{save: func(_ context.Context, results []store.FetchResult) error {
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
	add := func(id int64) { told[id] = append(told[id], s.add(t.Context(), store.FetchResult{URIID: id})) }
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

// While the database is away documents are not tried one by one.
func TestSaveAllWhileAway(t *testing.T) {
	t.Parallel()
	calls := 0
	errs := saveAll(t.Context(), make([]store.FetchResult, 3), func(context.Context, []store.FetchResult) error {
		calls++
		return repute.ErrUnavailable
	})
	if calls != 1 || len(errs) != 3 || !errors.Is(errs[0], repute.ErrUnavailable) || !errors.Is(errs[2], repute.ErrUnavailable) {
		t.Errorf("%d calls, %v", calls, errs)
	}
}
