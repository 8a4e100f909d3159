package read

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/indexer/node/jsonrpc"
	"repute/trust/source"
)

// archive keeps what logs say of raters, so that each is read once.
type archive struct {
	mu      sync.Mutex
	shelves map[shelfKey]*shelf
}

type shelfKey struct {
	source  string
	version int
	chain   uint64
}

// shelf is what the logs of one source say.
type shelf struct {
	mu     sync.Mutex
	raters map[common.Address]*history
	pace   pace
}

// history is what the logs up to a block say of one rater.
type history struct {
	known *source.Credential // what an earlier reading found, nil where signs has all
	next  uint64             // the first block that was not read
	signs []source.Sign
	full  bool // there were more signs than are kept, and signs has none
}

const (
	// ratersAtOnce is how many addresses one filter names.
	ratersAtOnce = 500
	// maxNamed is how many addresses are asked for by filters that name them. For more, all logs of the contract are
	// asked for: 100,000 addresses would take 200 filters for every span.
	maxNamed = 2_000
	// maxSpans bounds the filters that one reading of a source asks for. What is left is asked for at the next one.
	maxSpans = 2_000
	// maxSigns bounds the logs that are kept of one rater.
	maxSigns = 50_000
	// shareOfTime is the part of the time left for all sources that the logs of one source may take, as a divisor: the
	// first source MUST leave time for the others.
	shareOfTime = 3
)

// limits bound the reading of logs.
type limits struct {
	spans int // filters of one reading of a source
	signs int // logs that are kept of one rater
}

// allowance is what one reading of a source may still ask for.
type allowance struct {
	filters int
	until   time.Time // zero: any time
}

// newAllowance returns the allowance of one reading.
func newAllowance(ctx context.Context, filters int) *allowance {
	a := &allowance{filters: filters}
	if deadline, bounded := ctx.Deadline(); bounded {
		a.until = time.Now().Add(time.Until(deadline) / shareOfTime)
	}
	return a
}

// take reports whether so many filters may be asked for.
func (a *allowance) take(filters int) bool {
	a.filters -= filters
	return a.filters >= 0 && (a.until.IsZero() || time.Now().Before(a.until))
}

// shelf returns the shelf of a job's source at its home. Another version of a source has a shelf of its own, because its
// logs may mean something else.
func (a *archive) shelf(j *job) *shelf {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := shelfKey{j.source.ID, j.source.Version, j.home.Chain}
	if a.shelves[key] == nil {
		a.shelves[key] = &shelf{raters: map[common.Address]*history{}}
	}
	return a.shelves[key]
}

// tenures finds what the logs up to the session's block say of raters; persons is what calls said. Raters without a
// credential have none, and those whose logs are not read yet are missed.
func (j *job) tenures(ctx context.Context, raters []common.Address, persons map[common.Address]common.Hash) (
	map[common.Address]source.Tenure, error) {
	s := j.reader.kept.shelf(j)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(j, raters)
	out := map[common.Address]source.Tenure{}
	left := newAllowance(ctx, j.reader.limits.spans)
	for len(raters) > 0 {
		if err := j.extend(ctx, s, raters, left); err != nil && !errors.Is(err, errSpans) {
			return nil, err
		}
		var again []common.Address
		for _, a := range raters {
			h := s.raters[a]
			if why := h.unread(a, j.session.at.Number, j.reader.limits); why != nil {
				j.miss(a, why)
				continue
			}
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

// unread returns why the logs up to a block do not tell about the rater, nil where they do.
func (h *history) unread(rater common.Address, block uint64, most limits) error {
	switch {
	case h.full:
		return fmt.Errorf("more than %d logs are about %s", most.signs, rater)
	case h.next <= block:
		return errSpans
	}
	return nil
}

// begin makes the histories of raters that have none: from where their last credential was read on, where it was dated
// by logs of the same source.
func (s *shelf) begin(j *job, raters []common.Address) {
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

// until are the signs up to a block.
func (h *history) until(block uint64) []source.Sign {
	at, _ := slices.BinarySearchFunc(h.signs, block, func(s source.Sign, block uint64) int {
		if s.Block <= block {
			return -1
		}
		return 1
	})
	return h.signs[:at]
}

// extend reads the logs about raters up to the session's block. Raters whose next block is the same are asked for
// together. Those with the fewest unread blocks come first: raters whose credential is known MUST NOT wait for a scan
// of the whole chain that new ones need, and a scan that an earlier reading began is ended before another one begins.
func (j *job) extend(ctx context.Context, s *shelf, raters []common.Address, left *allowance) error {
	groups := map[uint64][]common.Address{}
	for _, a := range raters {
		if next := s.raters[a].next; next <= j.session.at.Number {
			groups[next] = append(groups[next], a)
		}
	}
	for _, next := range slices.Backward(slices.Sorted(maps.Keys(groups))) {
		size := ratersAtOnce
		if len(groups[next]) > maxNamed {
			size = len(groups[next])
		}
		for part := range slices.Chunk(groups[next], size) {
			if err := j.scan(ctx, s, part, next, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// errSpans says that a reading has asked for as many logs as it may.
var errSpans = errors.New("the logs of the source are not read up to the epoch's end yet")

// scan reads the logs about some raters from a block on, in spans that the endpoints take.
func (j *job) scan(ctx context.Context, s *shelf, raters []common.Address, from uint64, left *allowance) error {
	named, about := raters, map[common.Address]bool{}
	if len(raters) > maxNamed {
		named = nil
	}
	for _, a := range raters {
		about[a] = true
	}
	filters := j.source.Filters(j.home, named)
	for end := j.session.at.Number; from <= end; {
		r := s.pace.span(from, end)
		if !left.take(len(filters)) {
			return errSpans
		}
		signs, err := j.signs(ctx, filters, about, r)
		switch {
		case err == nil:
			s.pace.answered(r)
		case jsonrpc.IsTransient(err) || errors.As(err, &offError{}) || r.From == r.To || ctx.Err() != nil:
			return err
		default:
			s.pace.refused(r, jsonrpc.RangeHint(err))
			continue
		}
		s.add(raters, signs, r.To+1, j.reader.limits.signs)
		from = r.To + 1
	}
	return nil
}

// add appends what a span said.
func (s *shelf) add(raters []common.Address, signs []source.Sign, next uint64, most int) {
	for _, a := range raters {
		s.raters[a].next = next
	}
	for _, sign := range signs {
		h := s.raters[sign.Rater]
		if h.full {
			continue
		}
		if h.signs = append(h.signs, sign); len(h.signs) > most {
			h.signs, h.full = nil, true
		}
	}
}

// signs reads what the logs of one range say about some raters.
func (j *job) signs(ctx context.Context, filters []source.Filter, about map[common.Address]bool, r repute.BlockRange) (
	[]source.Sign, error) {
	ask := func(ctx context.Context, n *node.Node) (out []source.Sign, err error) {
		for _, f := range filters {
			if err := patiently(ctx, func() error {
				found, err := j.matching(ctx, n, f, about, r)
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

// matching asks one endpoint for the logs of one filter.
func (j *job) matching(ctx context.Context, n *node.Node, f source.Filter, about map[common.Address]bool,
	r repute.BlockRange) (out []source.Sign, err error) {
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
			if about[s.Rater] {
				out = append(out, s)
			}
		}
	}
	return out, nil
}

// time finds the times of the blocks that tenures name.
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
		err = patiently(ctx, func() error {
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
