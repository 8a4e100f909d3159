package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"repute"
	"repute/indexer/node/jsonrpc"
	"repute/store/chaindb"
)

// Run keeps subscriptions to new heads, probes idle and failed endpoints, and stores the health of
// all endpoints until ctx ends, which is no error; it then removes the stored health. A Pool
// answers without Run too.
func (p *Pool) Run(ctx context.Context) error {
	defer p.forget(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	for _, m := range p.members {
		if m.kind == "ws" {
			running.Go(func() { p.listen(ctx, m) })
		}
	}
	stored := true
	for ctx.Err() == nil {
		p.tryIdle(ctx)
		if err := p.save(ctx); err != nil && ctx.Err() == nil {
			if stored {
				p.log.Warn("endpoint health not stored", "error", err)
			}
			stored = false
		} else {
			stored = true
		}
		repute.Pause(ctx, p.opts.Every)
	}
	return nil
}

// tryIdle requests the head from endpoints that were not used for a while, so that their health is
// known when they are needed.
func (p *Pool) tryIdle(ctx context.Context) {
	p.refresh(ctx, func(m *peer, age time.Duration) bool {
		return m.limiter.Usable(time.Now()) && (m.limiter.Failing() || age > staleHead)
	})
}

// saveTimeout bounds the storing of health.
const saveTimeout = 5 * time.Second

// save stores the health of all endpoints.
func (p *Pool) save(ctx context.Context) error {
	if p.opts.DB == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	return chaindb.SaveEndpoints(ctx, p.opts.DB, p.opts.ChainID, p.Health())
}

// forget removes the stored health. If that fails, readers ignore the rows because of their age.
func (p *Pool) forget(ctx context.Context) {
	if p.opts.DB == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := chaindb.ForgetEndpoints(ctx, p.opts.DB, p.opts.ChainID, p.opts.Owner); err != nil {
		p.log.Debug("endpoint health not removed", "error", err)
	}
}

// Pauses between subscriptions.
const (
	listenMin = time.Second
	listenMax = 30 * time.Second
)

// listen keeps a subscription to new heads.
func (p *Pool) listen(ctx context.Context, m *peer) {
	retry := Backoff{Min: listenMin, Max: listenMax}
	for ctx.Err() == nil {
		err := p.subscribe(ctx, m, &retry)
		if ctx.Err() != nil {
			return
		}
		p.log.Debug("subscription ended", "endpoint", m.name, "error", m.wrap("newHeads", err))
		repute.Pause(ctx, retry.Next())
	}
}

var errSilent = errors.New("no heads are announced although there are new ones")

// subscribe announces heads until the subscription ends, or is silent for long
// while polling shows that the chain moves.
func (p *Pool) subscribe(ctx context.Context, m *peer, retry *Backoff) error {
	if m.limiter.Excluded() || !m.limiter.Usable(time.Now()) {
		return errors.New("the endpoint is excluded or paused")
	}
	dialing, cancel := context.WithTimeout(ctx, m.opts.Timeout)
	defer cancel()
	client, err := m.dial(dialing)
	if err != nil {
		return err
	}
	heads := make(chan *jsonrpc.Header, 16)
	sub, err := client.EthSubscribe(dialing, heads, "newHeads")
	if err != nil {
		return err
	}
	defer sub.Unsubscribe()
	beat := heartbeat{last: time.Now(), least: p.opts.Silence}
	watch := time.NewTicker(p.opts.Silence / 3)
	defer watch.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-sub.Err():
			return errors.Join(err, errors.New("the connection ended"))
		case h := <-heads:
			if b, err := block(h); err == nil {
				m.setHead(b.Number)
				beat.hear(b)
				retry.Reset()
				p.announce()
			}
		case <-watch.C:
			if beat.silent() && p.best() > beat.head {
				m.disconnect()
				return errSilent
			}
		}
	}
}

// heartbeat measures the usual time between two heads.
type heartbeat struct {
	last     time.Time
	head     uint64
	interval time.Duration // between heads, smoothed
	least    time.Duration
}

// hear records an announced head.
func (h *heartbeat) hear(b repute.Block) {
	now := time.Now()
	if h.head > 0 {
		h.interval += (now.Sub(h.last) - h.interval) / 8
	}
	h.last, h.head = now, b.Number
}

// silent reports whether no head was announced for six block times, and for least.
func (h *heartbeat) silent() bool { return time.Since(h.last) > max(h.least, 6*h.interval) }
