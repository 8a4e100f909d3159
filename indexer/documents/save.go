package documents

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"repute"
	"repute/store"
)

const (
	saveMost      = 50 // documents stored by one transaction
	savesTogether = 2  // transactions at a time
)

// saver stores what all hosts' turns learn, in few transactions: whatever comes while
// one is under way goes into the next. Most of what a transaction costs it costs once.
type saver struct {
	save    func(context.Context, []store.FetchResult) error
	mu      sync.Mutex
	waiting []saving
	running int
}

// saving is a result on its way, and where its outcome is told.
type saving struct {
	result store.FetchResult
	told   chan error
}

// add has the result stored, also at the end of ctx, and gives the channel on which
// the outcome comes.
func (s *saver) add(ctx context.Context, r store.FetchResult) <-chan error {
	told := make(chan error, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, saving{r, told})
	if s.running < savesTogether {
		s.running++
		go s.drain(context.WithoutCancel(ctx))
	}
	return told
}

// drain stores until nothing waits.
func (s *saver) drain(ctx context.Context) {
	for {
		batch := s.next()
		if batch == nil {
			return
		}
		results := make([]store.FetchResult, len(batch))
		for i, b := range batch {
			results[i] = b.result
		}
		for i, err := range saveAll(ctx, results, s.save) {
			batch[i].told <- err
		}
	}
}

// next takes what waits, at most saveMost and one of each URI; nil ends a drain.
func (s *saver) next() (batch []saving) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[int64]bool{}
	var rest []saving
	for _, w := range s.waiting {
		if id := w.result.URIID; len(batch) < saveMost && !seen[id] {
			seen[id] = true
			batch = append(batch, w)
			continue
		}
		rest = append(rest, w)
	}
	s.waiting = rest
	if batch == nil {
		s.running--
	}
	return batch
}

// saveAll stores results together, or where that fails each by itself, and gives the
// outcome of each. While the database is away nothing is tried again.
func saveAll(ctx context.Context, results []store.FetchResult, save func(context.Context, []store.FetchResult) error) []error {
	errs := make([]error, len(results))
	err := save(ctx, results)
	if err == nil {
		return errs
	}
	alone := len(results) > 1 && !errors.Is(err, repute.ErrUnavailable)
	for i := range results {
		if errs[i] = err; alone {
			errs[i] = save(ctx, results[i:i+1])
		}
	}
	return errs
}

// save stores what was learnt, also at the end of ctx.
func (l *Loop) save(ctx context.Context, results []store.FetchResult) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	if err := l.db.SaveDocuments(ctx, results); err != nil {
		return fmt.Errorf("%d documents: %w", len(results), err)
	}
	for _, r := range results {
		l.opts.Metrics.fetched(r.Source, r.Reason)
	}
	return nil
}
