package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node/jsonrpc"
	"repute/store"
)

// PoolOptions configure a Pool. Zero values are replaced by the named defaults.
type PoolOptions struct {
	ChainID uint64        // chain that every endpoint must serve
	Owner   string        // of the stored health, unique per process; host and pid
	DB      *store.DB     // where health is stored; nil: nowhere
	Every   time.Duration // between two storings of it, 10 s
	// Silence is how long an endpoint may announce no head, while others announce newer ones,
	// before its subscription is renewed: 15 s, and at least six block times.
	Silence time.Duration
	Metrics *Metrics     // nil: not exposed
	Log     *slog.Logger // nil: discarded
}

// Pool is a Source over several endpoints of one chain. It prefers endpoints that answer quickly
// and seldom fail, continues with the next one when an endpoint fails or does not have the data,
// and takes each answer from a single endpoint. It is safe for concurrent use.
type Pool struct {
	members   []*peer
	opts      PoolOptions
	log       *slog.Logger
	announced chan struct{}
}

const (
	// staleHead is the age of a head at which it is requested again from an idle endpoint.
	staleHead = 30 * time.Second
	// secondHeadWait is how long Heads waits for the answer of a second endpoint.
	secondHeadWait = 100 * time.Millisecond
	// secondHeadEvery is the pause between two requests for the head of a second endpoint.
	secondHeadEvery = 3 * time.Second
	// exploreEvery is the number of ranges of which one is requested from another endpoint than the
	// best, so that its health stays known.
	exploreEvery = 20
)

// NewPool returns a Pool that owns the nodes; Close closes them.
func NewPool(nodes []*Node, o PoolOptions) *Pool {
	setDefault(&o.Every, 10*time.Second)
	setDefault(&o.Silence, 15*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Owner == "" {
		host, _ := os.Hostname()
		o.Owner = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	p := &Pool{opts: o, log: o.Log.With("chain", o.ChainID), announced: make(chan struct{}, 1)}
	assignNames(nodes)
	for _, n := range nodes {
		if o.Metrics != nil {
			n.meter = o.Metrics.meter(o.ChainID, n.name)
			n.meter.is(repute.EndpointClosed)
		}
		n.limiter.Changed = func(from, to repute.EndpointState, why string) { p.changed(n, from, to, why) }
		n.limiter.Others = func() bool { return p.othersThan(n) }
		p.members = append(p.members, &peer{Node: n, alone: len(nodes) == 1})
	}
	return p
}

// OpenPool returns a Pool of the endpoints with these URLs, in their order. It connects at the first
// request.
func OpenPool(urls []string, o Options, p PoolOptions) (*Pool, error) {
	nodes := make([]*Node, len(urls))
	for i, url := range urls {
		n, err := New(url, o)
		if err != nil {
			return nil, err
		}
		nodes[i] = n
	}
	return NewPool(nodes, p), nil
}

// Close ends the connections of all nodes.
func (p *Pool) Close() {
	for _, m := range p.members {
		m.Close()
	}
}

// othersThan reports whether an endpoint other than n can be used now.
func (p *Pool) othersThan(n *Node) bool {
	now := time.Now()
	return slices.ContainsFunc(p.members, func(m *peer) bool { return m.Node != n && m.limiter.Usable(now) })
}

// changed logs and counts that an endpoint is no longer used or is used again, but not the probes
// between the two.
func (p *Pool) changed(n *Node, from, to repute.EndpointState, why string) {
	n.meter.is(to)
	switch {
	case to == repute.EndpointExcluded:
		p.log.Warn("endpoint excluded", "endpoint", n.name, "reason", why)
	case from == repute.EndpointClosed:
		p.log.Warn("endpoint paused after failures", "endpoint", n.name, "error", why)
	case to == repute.EndpointClosed:
		p.log.Warn("endpoint works again", "endpoint", n.name)
	default:
		p.log.Debug("endpoint probed", "endpoint", n.name, "state", to, "error", why)
	}
}

// Nodes returns the endpoints that recently showed that they serve the chain, the healthiest first.
func (p *Pool) Nodes() []*Node {
	var out []*Node
	now := time.Now()
	for _, m := range p.ranked(func(m *peer) bool { return true }) {
		if !m.limiter.Excluded() && m.isProven(now) {
			out = append(out, m.Node)
		}
	}
	return out
}

// Witnesses returns n endpoints of different hosts that serve the chain, or as many as are configured,
// the healthiest first. If fewer answer, the error names the hosts that do not.
func (p *Pool) Witnesses(ctx context.Context, n int) ([]*Node, error) {
	var out []*Node
	var failed []error
	hosts := map[string]bool{}
	for _, m := range p.ranked(func(m *peer) bool { return true }) {
		hosts[m.Host()] = true
		if len(out) == n || slices.ContainsFunc(out, func(o *Node) bool { return o.Host() == m.Host() }) {
			continue
		}
		err := p.prove(ctx, m)
		if reason, excluded := m.limiter.Exclusion(); err == nil && excluded {
			err = fmt.Errorf("%s %s", m.host, reason)
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		out = append(out, m.Node)
	}
	if len(out) < min(n, len(hosts)) {
		return nil, fmt.Errorf("too few endpoints answer: %w", p.conflict(errors.Join(failed...)))
	}
	return out, nil
}

// ranked orders the members: first those that fit and are usable now, then those that are usable,
// then the rest; the healthier first within each group.
func (p *Pool) ranked(fits func(*peer) bool) []*peer {
	type rank struct {
		*peer
		class int
		score float64
	}
	now := time.Now()
	ranks := make([]rank, len(p.members))
	for i, m := range p.members {
		ranks[i] = rank{m, 2, m.limiter.Score()}
		if m.limiter.Usable(now) {
			ranks[i].class = 1
			if fits(m) {
				ranks[i].class = 0
			}
		}
	}
	slices.SortStableFunc(ranks,
		func(a, b rank) int { return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.score, b.score)) })
	out := make([]*peer, len(ranks))
	for i, r := range ranks {
		out[i] = r.peer
	}
	return out
}

// Span requests a range from the best endpoint that may have it, and from the next ones while they
// fail.
func (p *Pool) Span(ctx context.Context, q Query) (span Span, err error) {
	now := time.Now()
	list := p.ranked(func(m *peer) bool { return m.fits(q, now) })
	if other := rand.IntN(exploreEvery * max(1, len(list)-1)); other+1 < len(list) && !q.Linked &&
		list[other+1].fits(q, now) && list[other+1].limiter.Usable(now) {
		list[0], list[other+1] = list[other+1], list[0]
	}
	err = p.first(ctx, list, func(m *peer) error {
		span, err = p.spanOf(ctx, m, q)
		return err
	})
	return span, err
}

// spanOf requests a range from one endpoint and records what the answer proves about it. Among
// several endpoints, an inconsistent answer counts as a failure of the endpoint that returned it.
func (p *Pool) spanOf(ctx context.Context, m *peer, q Query) (Span, error) {
	span, err := m.Span(ctx, q)
	if err == nil && len(p.members) > 1 {
		if err = span.Check(q); err != nil {
			err = m.wrap("span", err)
			m.limiter.Blame(err.Error())
			m.doubt()
		}
	}
	if err != nil {
		m.recordFailure(q, err)
		return Span{}, err
	}
	m.answered(q)
	return span, nil
}

// Blocks requests blocks from one endpoint after another until one has all blocks.
func (p *Pool) Blocks(ctx context.Context, numbers []uint64) (blocks []repute.Block, err error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	err = p.first(ctx, p.having(slices.Max(numbers)), func(m *peer) error {
		blocks, err = m.Blocks(ctx, numbers)
		return err
	})
	return blocks, err
}

// Header requests a header from one endpoint after another until one returns a header whose hash was recomputed. If
// none does, it returns a header without that proof.
func (p *Pool) Header(ctx context.Context, number uint64) (shown Sealed, err error) {
	err = p.first(ctx, p.having(number), func(m *peer) error {
		s, err := m.Header(ctx, number)
		if err != nil {
			return err
		}
		if shown = s; !s.Recomputed {
			return m.wrap("header", &jsonrpc.AnswerError{What: "nothing is proven"})
		}
		return nil
	})
	if shown.Hash != (common.Hash{}) && ctx.Err() == nil {
		return shown, nil
	}
	return shown, err
}

// Receipts requests the receipts of a block from one endpoint after another until one proves the
// contents of the block. If none can, it returns the unproven evidence of one of them.
func (p *Pool) Receipts(ctx context.Context, block repute.Block, spend Spend) (shown Evidence, err error) {
	hosts := map[string]bool{}
	err = p.first(ctx, p.having(block.Number), func(m *peer) error {
		e, err := m.Receipts(ctx, block, spend)
		switch {
		case err != nil:
			return err
		case e.Proven:
			shown = e
			return nil
		case shown.Hash != block.Hash:
			shown, hosts[m.Host()] = e, true
		case slices.EqualFunc(shown.Logs, e.Logs, SameLog):
			hosts[m.Host()] = true
		}
		shown.Shown = len(hosts)
		return m.wrap("receipts", &jsonrpc.AnswerError{What: "nothing is proven"})
	})
	if shown.Hash == block.Hash && ctx.Err() == nil {
		return shown, nil
	}
	return shown, err
}

// having ranks the members for requests about a block: those that are known not to have it come later.
func (p *Pool) having(number uint64) []*peer {
	now := time.Now()
	return p.ranked(func(m *peer) bool {
		head, doubted, _ := m.state(now)
		return !doubted && (head == 0 || head >= number)
	})
}

// Agreed returns the headers of canonical blocks on which the endpoints agree. A statement of one
// endpoint is not accepted against the others. Only at the newest requested block may endpoints
// differ for a moment; below it a majority decides. Without a majority the endpoint with the higher
// head is accepted, and none while the heads are level. A single endpoint is accepted without
// comparison.
func (p *Pool) Agreed(ctx context.Context, numbers []uint64) ([]repute.Block, error) {
	if len(p.members) == 1 || len(numbers) == 0 {
		return p.Blocks(ctx, numbers)
	}
	views := p.views(ctx, numbers)
	if len(views) == 0 {
		return p.Blocks(ctx, numbers)
	}
	most := views[0]
	for _, v := range views {
		hosts := map[string]bool{}
		for _, w := range views {
			if sameView(v.blocks, w.blocks) {
				hosts[w.Host()] = true
			}
		}
		v.votes = len(hosts)
		if v.votes > most.votes || v.votes == most.votes && v.head > most.head+soloLead {
			most = v
		}
	}
	for _, v := range views {
		if sameView(v.blocks, most.blocks) {
			continue
		}
		if v.votes == most.votes && most.head <= v.head+soloLead {
			return nil, fmt.Errorf("endpoints %s and %s disagree about blocks up to %d: %w", most.name, v.name,
				slices.Max(numbers), jsonrpc.ErrNoBlock)
		}
		v.peer.doubt()
		p.log.Warn("endpoint contradicts the others about the chain", "endpoint", v.name)
	}
	return most.blocks, nil
}

const (
	// maxCompared is the largest number of endpoints that are compared.
	maxCompared = 3
	// soloLead is how many blocks higher the head of an endpoint must be for it to be accepted
	// without a majority.
	soloLead = 2
)

// view is one endpoint's answer about some blocks.
type view struct {
	*peer
	blocks []repute.Block
	head   uint64
	votes  int
}

// views requests blocks from the best endpoints at the same time.
func (p *Pool) views(ctx context.Context, numbers []uint64) (out []*view) {
	list := p.having(slices.Max(numbers))
	found := make(chan *view, maxCompared)
	sent := 0
	for _, m := range list {
		if sent == maxCompared || !m.limiter.Usable(time.Now()) {
			break
		}
		sent++
		go func() {
			v := &view{peer: m}
			if h, err := m.refreshHead(ctx, p.opts.ChainID); err == nil {
				v.head = h.Latest.Number
				v.blocks, _ = m.Blocks(ctx, numbers) // no blocks: no opinion
			}
			found <- v
		}()
	}
	for range sent {
		if v := <-found; len(v.blocks) == len(numbers) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b *view) int { return cmp.Compare(a.name, b.name) })
	return out
}

// sameView compares two views of the same blocks, the newest aside.
func sameView(a, b []repute.Block) bool {
	newest := uint64(0)
	for _, x := range a {
		newest = max(newest, x.Number)
	}
	for i := range a {
		if a[i].Number < newest && a[i].Hash != b[i].Hash {
			return false
		}
	}
	return true
}
