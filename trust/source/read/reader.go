package read

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/trust/source"
)

// Reader reads sources of trust. It is safe for concurrent use.
type Reader struct {
	pools map[uint64]*node.Pool
	calls *multicall
	kept  archive
	// limits are those of this package; tests have smaller ones.
	limits limits

	mu   sync.Mutex
	ends map[uint64]end // of chains that are read for others: where they were last read
}

// New makes a reader of the chains that the pools ask. multicall is the address of Multicall3, the same on all.
func New(multicall common.Address, pools map[uint64]*node.Pool) (*Reader, error) {
	calls, err := newMulticall(multicall)
	if err != nil {
		return nil, err
	}
	return &Reader{pools: pools, calls: calls, kept: archive{shelves: map[shelfKey]*shelf{}}, ends: map[uint64]end{},
		limits: limits{maxSpans, maxSigns}}, nil
}

// Reaches reports whether an endpoint of a chain is configured.
func (r *Reader) Reaches(chain uint64) bool { return r.pools[chain] != nil }

// Read asks sources about raters as of a block of a chain. past is what the readings before had found. There is one
// reading for each source, in their order; what fails is said in it. After the deadline of the context, the sources
// that were not read are incomplete and all their raters are unknown. A canceled context is an error.
func (r *Reader) Read(ctx context.Context, chain uint64, at repute.Block, sources []*source.Source,
	raters []common.Address, past source.Past) ([]source.Reading, error) {
	sessions := map[uint64]*session{}
	open := func(chain uint64) *session {
		if sessions[chain] == nil {
			sessions[chain] = r.open(ctx, chain, at)
		}
		return sessions[chain]
	}
	local := open(chain)
	local.at, local.placed = at, true
	out := make([]source.Reading, 0, len(sources))
	for _, s := range sources {
		if s.Read.Payments != nil {
			out = append(out, s.Unanswered(chain, at, raters, "payments are read from the index, not from a chain"))
			continue
		}
		j := &job{reader: r, source: s, home: s.Home(chain), raters: raters, past: past}
		if j.home == nil {
			j.home, j.local = &s.Homes[0], local
		}
		j.session = open(j.home.Chain)
		out = append(out, j.run(ctx))
		if errors.Is(ctx.Err(), context.Canceled) {
			return nil, ctx.Err()
		}
	}
	return out, nil
}

// session is a chain at one block, with the endpoints that are asked of it.
type session struct {
	reader *Reader
	chain  uint64
	nodes  []*node.Node
	err    error // why it cannot be asked
	at     repute.Block
	placed bool // at is known
	end    time.Time
	facts  map[common.Address]fact
}

// witnesses is how many endpoints must agree, where so many are configured.
const witnesses = 2

// open finds the endpoints of a chain. Blocks of another chain than the scored one are placed when they are needed.
func (r *Reader) open(ctx context.Context, chain uint64, at repute.Block) *session {
	s := &session{reader: r, chain: chain, end: at.Time, facts: map[common.Address]fact{}}
	pool := r.pools[chain]
	if pool == nil {
		s.err = fmt.Errorf("no endpoint of chain %d is configured", chain)
		return s
	}
	if s.nodes, s.err = pool.Witnesses(ctx, witnesses); s.err != nil {
		s.err = fmt.Errorf("chain %d: %w", chain, s.err)
	}
	return s
}

// now returns the time of the session's block in Unix seconds.
func (s *session) now() uint64 { return uint64(max(0, s.at.Time.Unix())) }

// ready places the session's block.
func (s *session) ready(ctx context.Context) error {
	if s.err == nil && !s.placed {
		s.at, s.err = s.reader.endOf(ctx, s)
		s.placed = true
	}
	return s.err
}

// job is the reading of one source.
type job struct {
	reader  *Reader
	session *session // of the home
	local   *session // of the scored chain, nil where that is the home
	source  *source.Source
	home    *source.Home
	raters  []common.Address
	past    source.Past

	out    source.Reading
	asked  []*source.Inquiry
	missed map[common.Address]bool
}

// offError turns a source off: it is not what was declared.
type offError struct{ error }

// maxReason bounds the reason that is stored of a failed reading, in bytes.
const maxReason = 500

// run reads the source.
func (j *job) run(ctx context.Context) source.Reading {
	before := source.StateOf(j.past.States, j.source.ID)
	j.out.State = source.State{Source: j.source.ID, Chain: j.home.Chain, Status: source.StatusOK}
	if before != nil {
		j.out.Implementations = before.Implementations
	}
	err := j.read(ctx, before)
	at := j.session.at
	j.out.Block, j.out.Hash, j.out.Time = at.Number, at.Hash, j.session.now()
	if at.Time.IsZero() { // it was not found: the credentials of before are as old as the epoch makes them
		j.out.Time = uint64(max(0, j.session.end.Unix()))
	}
	var off offError
	switch {
	case errors.As(err, &off):
		j.out.Status, j.out.Credentials, j.out.Unknown = source.StatusOff, nil, nil
	case err != nil:
		j.out.Status, j.out.Credentials, j.out.Unknown = source.StatusIncomplete, nil, j.raters
	}
	if err != nil {
		j.out.Reason = shorten(err)
	}
	return j.out
}

// shorten returns an error as a reason of one line.
func shorten(err error) string {
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > maxReason {
		text = strings.ToValidUTF8(text[:maxReason], "") + "…"
	}
	return text
}

// read asks contracts and logs, and fills the reading.
func (j *job) read(ctx context.Context, before *source.State) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the time for reading the sources ended before this one was read: %w", err)
	}
	if err := j.session.ready(ctx); err != nil {
		return err
	}
	if j.local != nil && j.local.err != nil {
		return j.local.err
	}
	if err := j.checkContracts(ctx, before); err != nil {
		return err
	}
	if err := j.ask(ctx); err != nil {
		return err
	}
	if err := j.leaveContracts(ctx); err != nil {
		return err
	}
	return j.date(ctx)
}

// ask makes all calls of the source. Afterwards asked holds the inquiries that found a credential.
func (j *job) ask(ctx context.Context) error {
	if err := j.begin(ctx); err != nil {
		return err
	}
	for {
		var open []*source.Inquiry
		var queries []source.Query
		for _, q := range j.asked {
			if q.Verdict == source.Open {
				open, queries = append(open, q), append(queries, q.Next())
			}
		}
		if len(open) == 0 {
			break
		}
		answers, err := j.session.call(ctx, queries)
		if err != nil {
			return err
		}
		for i, q := range open {
			err := q.Answer(answers[i].Success, answers[i].ReturnData)
			switch q.Verdict {
			case source.Unreadable:
				return offError{err}
			case source.Unknown:
				j.miss(q.Rater, err)
			}
		}
	}
	j.asked = slices.DeleteFunc(j.asked, func(q *source.Inquiry) bool { return q.Verdict != source.Holds })
	return nil
}

// miss notes a rater that was not answered for; the first reason counts.
func (j *job) miss(rater common.Address, why error) {
	if j.missed[rater] {
		return
	}
	if j.missed == nil {
		j.missed = map[common.Address]bool{}
	}
	j.missed[rater] = true
	j.out.Unknown = append(j.out.Unknown, rater)
	if j.out.Status == source.StatusOK {
		j.out.Status, j.out.Reason = source.StatusIncomplete, shorten(why)
	}
}

// begin makes the inquiries: of all raters, or of those that have an attestation in the logs.
func (j *job) begin(ctx context.Context) error {
	if !j.source.ByLogs() {
		for _, a := range j.raters {
			j.asked = append(j.asked, j.source.Ask(j.home, a, common.Hash{}, j.session.now()))
		}
		return nil
	}
	tenures, err := j.tenures(ctx, j.raters, nil)
	if err != nil {
		return err
	}
	for _, a := range j.raters {
		if t, has := tenures[a]; has {
			j.asked = append(j.asked, j.source.Ask(j.home, a, t.Subject, j.session.now()))
		}
	}
	return nil
}

// date makes credentials of what was found.
func (j *job) date(ctx context.Context) error {
	at := j.session.at
	var tenures map[common.Address]source.Tenure
	if j.source.ByEvents() {
		raters, persons := make([]common.Address, len(j.asked)), map[common.Address]common.Hash{}
		for i, q := range j.asked {
			raters[i], persons[q.Rater] = q.Rater, q.Person()
		}
		var err error
		if tenures, err = j.tenures(ctx, raters, persons); err != nil {
			return err
		}
		if err := j.session.time(ctx, tenures); err != nil {
			return err
		}
	}
	for _, q := range j.asked {
		c := q.Credential(at.Number, at.Hash, j.session.now())
		if j.source.ByEvents() {
			t, has := tenures[q.Rater]
			if !has {
				j.miss(q.Rater, fmt.Errorf("no log tells since when %s has what the contract says it has", q.Rater))
				continue
			}
			c.Date(t)
		}
		j.out.Credentials = append(j.out.Credentials, c)
	}
	source.Sort(j.out.Credentials)
	return nil
}
