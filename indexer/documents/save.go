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

// saver stores the results of all hosts in few transactions: results that arrive during a transaction go
// into the next one, because most of the cost of a transaction does not depend on its size.
type saver struct {
	save    func(context.Context, []docdb.FetchResult) error
	broken  func(docdb.FetchResult) docdb.FetchResult // the result that is stored when saving panicked
	mu      sync.Mutex
	waiting []saving
	running int
}

// saving is a result to be saved. told receives the error of saving.
type saving struct {
	result docdb.FetchResult
	told   chan error
}

// add saves a result, also after ctx has ended, and returns the channel that receives the error.
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

// next returns the waiting results, at most saveMost and one of each URI; nil when none wait.
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

// errBroken is returned when saving a result panicked.
var errBroken = errors.New("a fault of this program")

// saveAll saves results in one transaction or, if that fails, each in its own, and returns the error of
// each. A result that makes saving panic is replaced by one that says so. saveAll takes at most saveLimit,
// also after ctx has ended, and retries nothing while the database is unavailable.
func (s *saver) saveAll(ctx context.Context, results []docdb.FetchResult) []error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveLimit)
	defer cancel()
	errs := make([]error, len(results))
	err := s.try(ctx, results)
	if err == nil {
		return errs
	}
	for i := range results {
		if errs[i] = err; len(results) > 1 && !unavailable(err) {
			if errs[i] = s.try(ctx, results[i:i+1]); unavailable(errs[i]) {
				err = errs[i]
			}
		}
		if errors.Is(errs[i], errBroken) {
			errs[i] = errors.Join(errs[i], s.try(ctx, []docdb.FetchResult{s.broken(results[i])}))
		}
	}
	return errs
}

// try saves results and recovers from panics, because the documents are untrusted input.
func (s *saver) try(ctx context.Context, results []docdb.FetchResult) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("%w: %v, %s", errBroken, broken, debug.Stack())
		}
	}()
	return s.save(ctx, results)
}

// unavailable reports whether other results would fail as well, because the database cannot be reached or
// does not answer.
func unavailable(err error) bool {
	return errors.Is(err, repute.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// save stores results and counts them; it is the save function of the saver.
func (l *Loop) save(ctx context.Context, results []docdb.FetchResult) error {
	if err := docdb.SaveDocuments(ctx, l.db, results...); err != nil {
		return fmt.Errorf("%d documents: %w", len(results), err)
	}
	for _, r := range results {
		l.opts.Metrics.fetched(r.Source, r.Reason)
	}
	return nil
}
