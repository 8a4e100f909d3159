package documents

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"repute"
	"repute/store/docdb"
)

const (
	saveMost      = 50 // documents stored by one transaction
	savesTogether = 2  // transactions at a time
)

// saver stores what all hosts' turns learn, in few transactions: whatever comes while
// one is under way goes into the next. Most of what a transaction costs it costs once.
type saver struct {
	save    func(context.Context, []docdb.FetchResult) error
	broken  func(docdb.FetchResult) docdb.FetchResult // the outcome of one that breaks us
	mu      sync.Mutex
	waiting []saving
	running int
}

// saving is a result on its way, and where its outcome is told.
type saving struct {
	result docdb.FetchResult
	told   chan error
}

// add has the result stored, also at the end of ctx, and gives the channel on which
// the outcome comes.
func (s *saver) add(ctx context.Context, r docdb.FetchResult) <-chan error {
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
		results := make([]docdb.FetchResult, len(batch))
		for i, b := range batch {
			results[i] = b.result
		}
		for i, err := range s.saveAll(ctx, results) {
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

// errBroken tells that our own code broke on what it was to store.
var errBroken = errors.New("a fault of this program")

// saveAll stores results together, or where that fails each by itself, and gives the
// outcome of each: one that breaks us is stored as such, in place of what was read. All
// of it takes no longer than saveLimit, also at the end of ctx; while the database is
// away nothing is tried again.
func (s *saver) saveAll(ctx context.Context, results []docdb.FetchResult) []error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	errs := make([]error, len(results))
	err := s.try(ctx, results)
	if err == nil {
		return errs
	}
	for i := range results {
		if errs[i] = err; len(results) > 1 && !away(err) {
			if errs[i] = s.try(ctx, results[i:i+1]); away(errs[i]) {
				err = errs[i]
			}
		}
		if errors.Is(errs[i], errBroken) {
			errs[i] = errors.Join(errs[i], s.try(ctx, []docdb.FetchResult{s.broken(results[i])}))
		}
	}
	return errs
}

// try saves, and never panics: strangers chose what is saved.
func (s *saver) try(ctx context.Context, results []docdb.FetchResult) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("%w: %v, %s", errBroken, broken, debug.Stack())
		}
	}()
	return s.save(ctx, results)
}

// away tells whether whatever else is tried would fail, too: the database is not there, or
// does not answer.
func away(err error) bool {
	return errors.Is(err, repute.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// save is the loop's saver.save.
func (l *Loop) save(ctx context.Context, results []docdb.FetchResult) error {
	if err := docdb.SaveDocuments(ctx, l.db, results...); err != nil {
		return fmt.Errorf("%d documents: %w", len(results), err)
	}
	for _, r := range results {
		l.opts.Metrics.fetched(r.Source, r.Reason)
	}
	return nil
}
