package read

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/trust/source"
)

// logCache keeps the decoded logs of all sources in memory, so that each log is read once per process.
type logCache struct {
	mu      sync.Mutex
	sources map[sourceKey]*sourceLogs
}

// sourceKey identifies a source at a home. A new version of the source starts with no logs.
type sourceKey struct {
	source  string
	version int
	chain   uint64
}

// sourceLogs are the logs of one source at one home.
type sourceLogs struct {
	mu     sync.Mutex
	raters map[common.Address]*history
	span   uint64 // blocks of one request, reduced when endpoints refuse larger ranges; 0: no limit
}

// history has the logs of one rater from the block after known, or from the home's FromBlock, up to the block before
// next.
type history struct {
	known *source.Credential // of an earlier reading; nil when signs has all logs of the rater
	next  uint64             // the first block that was not read
	signs []source.Sign      // in the order of the chain
}

const (
	// ratersAtOnce is how many addresses one filter names.
	ratersAtOnce = 500
	// maxSpans is how many requests for logs one reading of a source makes. The next reading continues.
	maxSpans = 2_000
	// maxSigns is how many logs of one rater are kept. Above it the source is incomplete.
	maxSigns = 50_000
)

// of returns the logs of the source that a job reads.
func (c *logCache) of(j *job) *sourceLogs {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := sourceKey{j.source.ID, j.source.Version, j.home.Chain}
	if c.sources[key] == nil {
		c.sources[key] = &sourceLogs{raters: map[common.Address]*history{}}
	}
	return c.sources[key]
}

// tenures reads the logs of raters up to the session's block and returns the tenures of raters with a credential.
// persons are the results of Inquiry.Person, nil when no calls were made.
func (j *job) tenures(ctx context.Context, raters []common.Address, persons map[common.Address]common.Hash) (
	map[common.Address]source.Tenure, error) {
	s := j.reader.kept.of(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(j, raters)
	out := map[common.Address]source.Tenure{}
	budget := maxSpans
	for len(raters) > 0 {
		if err := j.extend(ctx, s, raters, &budget); err != nil {
			return nil, err
		}
		var again []common.Address
		for _, a := range raters {
			h := s.raters[a]
			tenure, tells := j.source.Tenure(h.known, persons[a], h.until(j.session.at.Number))
			switch tells {
			case source.Tells:
				out[a] = tenure
			case source.TellsLess:
				*h = history{next: j.home.FromBlock}
				again = append(again, a)
			}
		}
		raters = again
	}
	return out, nil
}

// begin makes a history for each rater that has none. It starts after the block at which the rater's stored credential
// of this source was read, or at FromBlock when the rater has none.
func (s *sourceLogs) begin(j *job, raters []common.Address) {
	held := map[common.Address]*source.Credential{}
	for i := range j.past.Credentials {
		c := &j.past.Credentials[i]
		if c.Source == j.source.ID && c.Version == j.source.Version && c.Chain == j.home.Chain &&
			c.Block <= j.session.at.Number {
			held[c.Rater] = c
		}
	}
	for _, a := range raters {
		h, c := s.raters[a], held[a]
		switch {
		case h != nil && (h.known == nil || h.known.Block <= j.session.at.Number):
		case c != nil:
			s.raters[a] = &history{known: c, next: c.Block + 1}
		default:
			s.raters[a] = &history{next: j.home.FromBlock}
		}
	}
}

// until returns the signs up to a block.
func (h *history) until(block uint64) []source.Sign {
	at, _ := slices.BinarySearchFunc(h.signs, block, func(s source.Sign, block uint64) int {
		if s.Block <= block {
			return -1
		}
		return 1
	})
	return h.signs[:at]
}

// extend reads the logs of raters up to the session's block. Raters whose next block is the same share their requests.
// budget is how many requests the reading may still make.
func (j *job) extend(ctx context.Context, s *sourceLogs, raters []common.Address, budget *int) error {
	groups := map[uint64][]common.Address{}
	for _, a := range raters {
		if next := s.raters[a].next; next <= j.session.at.Number {
			groups[next] = append(groups[next], a)
		}
	}
	for _, next := range slices.Sorted(maps.Keys(groups)) {
		for part := range slices.Chunk(groups[next], ratersAtOnce) {
			if err := j.scan(ctx, s, part, next, budget); err != nil {
				return err
			}
		}
	}
	return nil
}

// errSpans is returned when a reading has made maxSpans requests for logs.
var errSpans = errors.New("the logs of the source are not read up to the epoch's end yet")

// scan reads the logs of raters from a block on. It halves the range of a request that endpoints refuse.
func (j *job) scan(ctx context.Context, s *sourceLogs, raters []common.Address, from uint64, budget *int) error {
	filters := j.source.Filters(j.home, raters)
	for end := j.session.at.Number; from <= end; {
		r := repute.BlockRange{From: from, To: end}
		if s.span > 0 {
			r.To = min(end, from+s.span-1)
		}
		if *budget -= len(filters); *budget < 0 {
			return errSpans
		}
		signs, err := j.signs(ctx, filters, r)
		switch {
		case err == nil:
		case jsonrpc.IsTransient(err) || errors.As(err, &offError{}) || r.From == r.To || ctx.Err() != nil:
			return err
		default:
			s.span = max(1, (r.To-r.From+1)/2)
			if hint := jsonrpc.RangeHint(err); hint > 0 {
				s.span = min(s.span, hint)
			}
			continue
		}
		if err := s.add(raters, signs, r.To+1); err != nil {
			return err
		}
		from = r.To + 1
	}
	return nil
}

// add appends the signs of a range that ends before the block next to the histories of raters.
func (s *sourceLogs) add(raters []common.Address, signs []source.Sign, next uint64) error {
	for _, a := range raters {
		s.raters[a].next = next
	}
	for _, sign := range signs {
		h := s.raters[sign.Rater]
		if h.signs = append(h.signs, sign); len(h.signs) > maxSigns {
			delete(s.raters, sign.Rater)
			return fmt.Errorf("more than %d logs are about %s", maxSigns, sign.Rater)
		}
	}
	return nil
}

// signs reads and decodes the logs of one range of blocks from all endpoints of the session.
func (j *job) signs(ctx context.Context, filters []source.Filter, r repute.BlockRange) ([]source.Sign, error) {
	ask := func(ctx context.Context, n *node.Node) (out []source.Sign, err error) {
		for _, f := range filters {
			if err := retry(ctx, func() error {
				found, err := j.matching(ctx, n, f, r)
				if err == nil {
					out = append(out, found...)
				}
				return err
			}); err != nil {
				return nil, err
			}
		}
		slices.SortFunc(out, source.Sign.Compare)
		return slices.Compact(out), nil
	}
	return agreed(ctx, j.session, "logs", slices.Equal, ask)
}

// matching reads and decodes the logs of one filter from one endpoint.
func (j *job) matching(ctx context.Context, n *node.Node, f source.Filter, r repute.BlockRange) (out []source.Sign,
	err error) {
	logs, err := n.Matching(ctx, r, []common.Address{f.Contract}, f.Topics)
	if err == nil {
		err = node.Capped(r, len(logs))
	}
	if err != nil {
		return nil, err
	}
	for i := range logs {
		signs, err := j.source.Signs(j.home, &logs[i])
		if err != nil {
			return nil, offError{err}
		}
		for _, s := range signs {
			if f.Names(s.Rater) {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// time reads the headers of the blocks that tenures name, and sets the times of their moments.
func (s *session) time(ctx context.Context, tenures map[common.Address]source.Tenure) error {
	wanted := map[uint64]uint64{}
	for _, t := range tenures {
		for _, m := range []source.Moment{t.Issued, t.Renewed} {
			if m.Block > 0 {
				wanted[m.Block] = 0
			}
		}
	}
	numbers := slices.Sorted(maps.Keys(wanted))
	if len(numbers) == 0 {
		return nil
	}
	blocks, err := agreed(ctx, s, "headers", slices.Equal, func(ctx context.Context, n *node.Node) (out []repute.Block,
		err error) {
		err = retry(ctx, func() error {
			out, err = n.Blocks(ctx, numbers)
			return err
		})
		return out, err
	})
	if err != nil {
		return err
	}
	for _, b := range blocks {
		wanted[b.Number] = uint64(max(0, b.Time.Unix()))
	}
	for a, t := range tenures {
		for _, m := range []*source.Moment{&t.Issued, &t.Renewed} {
			if m.Block > 0 {
				m.Time = wanted[m.Block]
			}
		}
		tenures[a] = t
	}
	return nil
}
