package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	"repute"
	"repute/store/agentdb"
)

// Registered is what the chain says of an agent.
type Registered struct {
	Owner  common.Address
	Wallet common.Address // zero where none is set
	URI    string
}

// Registry is the chain of an agent. Events returns what happened to it in at most EventBlocks blocks
// from one on, and where to go on; from 0 on nothing, and the block after the newest one.
type Registry interface {
	Agent(ctx context.Context) (Registered, error)
	Events(ctx context.Context, from uint64) (events []repute.Record, next uint64, err error)
}

// Reputation reads the agent's own score.
type Reputation interface {
	Own(ctx context.Context) (Score, error)
}

// Resolver reports whether a URI leads to a document.
type Resolver interface {
	Resolves(ctx context.Context, uri string) error
}

// Validations takes events of validation registries: requests and answers, also those that it has taken
// before and those that do not concern it.
type Validations interface {
	Take(ctx context.Context, e repute.Record) error
}

// Upkeep is what a runtime does beside answering requests (sections 3 and 9).
type Upkeep struct {
	Router     *Router
	Registry   Registry
	Reputation Reputation // nil: the own score is not read
	Resolver   Resolver   // nil: the metadata URI is not resolved
	// Validations take the requests and answers of validators; without any they are logged alone.
	Validations []Validations
	// MetadataURI is what the operator believes the chain says; "" for nothing.
	MetadataURI string
	Days        int // for which the log is kept
	// Times between: chain and metadata, own score and heartbeat, events, and questions to the chain
	// before an agent that it does not confirm any more is ended.
	Sync, Beat, Watch, Confirm time.Duration

	watching following
	// uriProblems are the URI that was checked last and what was wrong with it. Syncing and events check it.
	uriProblems atomic.Pointer[[3]string]
}

// Times of section 3, and between questions for events.
const (
	syncTime  = time.Hour
	beatTime  = 10 * time.Minute
	watchTime = 15 * time.Second
	// confirmTime is the time between two of the confirmations.
	confirmTime = time.Minute
)

// confirmations is how often the chain must say the same before a served agent is ended: a node can lag
// or be wrong for a while.
const confirmations = 3

// Start checks that the agent is registered and that the signing key is its owner's or wallet's, and
// prepares the log. repute.ErrInvalid or repute.ErrNotFound names what is wrong: the agent MUST NOT be
// served then.
func (u *Upkeep) Start(ctx context.Context) error {
	if u.Days == 0 {
		u.Days = agentdb.MinRetention
	}
	if err := agentdb.Maintain(ctx, u.Router.db, u.Days); err != nil {
		return err
	}
	if err := u.sync(ctx); err != nil {
		return err
	}
	u.readScore(ctx)
	u.Router.Event(ctx, "start", map[string]string{"version": u.Router.o.Version})
	return u.Router.Beat(ctx)
}

// Owners are the agent's owner and wallet.
func (u *Upkeep) Owners() []common.Address {
	a := u.Router.registered.Load()
	if a == nil {
		return nil
	}
	out := []common.Address{a.Owner}
	if a.Wallet != (common.Address{}) && a.Wallet != a.Owner {
		out = append(out, a.Wallet)
	}
	return out
}

// sync reads the agent from the chain and compares it with the key and the metadata.
func (u *Upkeep) sync(ctx context.Context) error {
	a, err := u.Registry.Agent(ctx)
	if err != nil {
		return err
	}
	by := u.Router.o.Signer.Address()
	if by != a.Owner && by != a.Wallet {
		return repute.Invalid("agent.key",
			fmt.Sprintf("is of %s; the agent's owner is %s and its wallet %s", by, a.Owner, a.Wallet),
			"a key of the owner or the wallet (AGENT_PRIVATE_KEY)")
	}
	u.Router.registered.Store(&a)
	u.checkURI(ctx, a.URI)
	return nil
}

// checkURI logs what is wrong with the URI that the chain has for the agent. The same problem is logged
// once, although Start and Run both check.
func (u *Upkeep) checkURI(ctx context.Context, uri string) {
	var problem string
	var about []any
	switch {
	case uri == "":
		problem = "the agent has no URI onchain: call setAgentURI with the URL of the registration file"
	case u.Resolver != nil:
		if err := u.Resolver.Resolves(ctx, uri); err != nil {
			problem, about = "the agent's metadata URI does not resolve", []any{"uri", uri, "error", err}
		}
	}
	configured := ""
	if u.MetadataURI != "" && u.MetadataURI != uri {
		configured = "agent.metadata_uri (AGENT_METADATA_URI) is not what the chain says; the chain wins"
	}
	now := [3]string{uri, problem, configured}
	if known := u.uriProblems.Swap(&now); known != nil && *known == now {
		return
	}
	if configured != "" {
		u.Router.o.Log.WarnContext(ctx, configured, "configured", u.MetadataURI, "chain", uri)
	}
	if problem != "" {
		u.Router.o.Log.WarnContext(ctx, problem, about...)
	}
}

// Run keeps the agent up to date until ctx ends. It returns an error where the agent MUST NOT be served
// any more: it was transferred, and the key is not its owner's or wallet's.
func (u *Upkeep) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	each := func(every time.Duration, step func(context.Context) error) {
		g.Go(func() error {
			for {
				if err := step(ctx); err != nil {
					return err
				}
				if repute.Pause(ctx, every); ctx.Err() != nil {
					return nil
				}
			}
		})
	}
	each(cmp.Or(u.Sync, syncTime), func(ctx context.Context) error {
		_, err := u.synced(ctx)
		return err
	})
	each(cmp.Or(u.Beat, beatTime), u.beat)
	each(cmp.Or(u.Watch, watchTime), u.watch)
	return g.Wait()
}

// synced is the hourly step, also done when an event says that the URI changed. It reports whether the chain answered:
// one that does not is asked again later. The error is one that the chain confirmed confirmations times.
func (u *Upkeep) synced(ctx context.Context) (bool, error) {
	if err := agentdb.Maintain(ctx, u.Router.db, u.Days); err != nil {
		u.failed(ctx, "maintain log", err)
	}
	if err := agentdb.PrunePayments(ctx, u.Router.db, u.Router.o.ID.String(),
		time.Duration(u.Days)*24*time.Hour); err != nil {
		u.failed(ctx, "prune payments", err)
	}
	err := u.sync(ctx)
	for range confirmations - 1 {
		if !refuted(err) {
			break
		}
		u.Router.o.Log.WarnContext(ctx, "the chain does not confirm the agent; it is asked again", "error", err)
		if repute.Pause(ctx, cmp.Or(u.Confirm, confirmTime)); ctx.Err() != nil {
			return false, nil
		}
		err = u.sync(ctx)
	}
	if refuted(err) {
		return false, err
	}
	u.failed(ctx, "read agent from the chain", err)
	return err == nil, nil
}

// refuted reports whether the chain says that the agent is not this one.
func refuted(err error) bool {
	return errors.Is(err, repute.ErrInvalid) || errors.Is(err, repute.ErrNotFound)
}

// beat is the step every ten minutes: own score, mode and heartbeat.
func (u *Upkeep) beat(ctx context.Context) error {
	u.readScore(ctx)
	u.failed(ctx, "heartbeat", u.Router.Beat(ctx))
	return nil
}

// readScore reads the own score, and reports whether it did. Without an answer the last one counts, with its age.
func (u *Upkeep) readScore(ctx context.Context) bool {
	if u.Reputation == nil {
		u.Router.SetScore(ctx, nil)
		return true
	}
	s, err := u.Reputation.Own(ctx)
	if err != nil {
		u.failed(ctx, "read own score", err)
		u.Router.SetScore(ctx, nil)
		return false
	}
	u.Router.SetScore(ctx, &s)
	return true
}

// failed logs what is tried again later.
func (u *Upkeep) failed(ctx context.Context, what string, err error) {
	if err != nil && ctx.Err() == nil {
		u.Router.o.Log.WarnContext(ctx, what+" failed", "error", err)
	}
}
