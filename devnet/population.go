package devnet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// DocumentHost publishes a population's documents. Documents is one.
type DocumentHost interface {
	Serve(path, contentType string, body []byte) (url string)
	Pin(body []byte, o PinOptions) (cid string, err error)
	PinDir(files map[string][]byte) (cid string, err error)
}

// PopulationOptions configure Populate.
type PopulationOptions struct {
	Documents DocumentHost // required
	// Seed decides everything else. The same seed on the same Devnet options and
	// document URLs gives the same blocks.
	Seed uint64
	// Until is the time of the last block, the others being spread evenly before
	// it; zero makes them follow as Mine does. Seconds' precision.
	Until time.Time
}

// Population is who lives on a populated chain and what they meant to do. What
// the chain holds is said by View: reorganizations may undo intentions. Its
// methods belong to one goroutine.
type Population struct {
	Agents      []PopulatedAgent
	Clients     []Account // who rates: the watchtowers, people, and agents' wallets
	Watchtowers []Account // the clients that measure; fit to be roots of trust
	Ring        []Account // fresh wallets that praise one agent
	Praised     uint64    // that agent
	Validators  []Account

	dn      *Devnet
	docs    DocumentHost
	rng     *rand.Rand
	cast    cast
	given   []given
	asked   []asked
	paid    []payment
	pages   int // numbers documents, so that each has its own path
	matters int // numbers validation requests
}

// PopulatedAgent is an agent as it was meant.
type PopulatedAgent struct {
	ID     uint64
	Name   string
	Owner  Account
	Wallet common.Address // zero when cleared
	URI    string
	Form   Form
	// Quality, 0 to 1, is how well the agent works: what honest clients rate.
	Quality float64
}

// given is a rating that was sent, with its index.
type given struct {
	Rating
	client  Account
	index   uint64
	revoked bool
}

// asked is a validation request that was sent.
type asked struct {
	agent     uint64
	validator Account
	hash      common.Hash
	answered  bool
}

// stage is one block of a population's history. done sees the mined block.
type stage struct {
	fill func(b *Batch) error
	done func(m Mined)
}

// Populate writes the history of a population onto the chain: some fifty agents
// with documents of every form, broken ones among them, ratings, revocations,
// responses, a ring of fresh wallets, validations, transfers and updates.
func Populate(ctx context.Context, dn *Devnet, o PopulationOptions) (*Population, error) {
	if o.Documents == nil {
		return nil, repute.Invalid("Documents", "missing", "StartDocuments gives one")
	}
	if dn.opt.Accounts < castAccounts {
		return nil, repute.Invalid("Accounts", "too few for a population", fmt.Sprintf("at least %d", castAccounts))
	}
	c := newCast(dn)
	p := &Population{
		Clients: c.clients, Watchtowers: c.clients[:watchtowers], Ring: c.ring, Validators: c.validators,
		dn: dn, docs: o.Documents, cast: c,
		rng: rand.New(rand.NewPCG(o.Seed, 8004)),
	}
	first, err := dn.View().AgentCount(ctx)
	if err != nil {
		return nil, err
	}
	p.settle(first)
	if err := p.live(ctx, p.history(), o.Until); err != nil {
		return nil, err
	}
	return p, nil
}

// history is the order of things: who is rated must be registered, and who
// revokes must have rated.
func (p *Population) history() (stages []stage) {
	stages = append(stages, p.registrations()...)
	stages = append(stages, p.upkeep()...)
	stages = append(stages, p.payments())
	stages = append(stages, p.ratings()...)
	stages = append(stages, p.praise()...)
	stages = append(stages, p.oddities(), p.answers(), p.revocations(), p.lateAnswers())
	stages = append(stages, p.validations()...)
	stages = append(stages, p.moves()...)
	return stages
}

// live mines the stages, spread up to until.
func (p *Population) live(ctx context.Context, stages []stage, until time.Time) error {
	start := p.dn.Head().Time
	if need := time.Duration(len(stages)) * time.Second; !until.IsZero() && until.Sub(start) < need {
		return repute.Invalid("Until", "too near", fmt.Sprintf("at least %s after block %d", need, p.dn.Head().Number))
	}
	for i, s := range stages {
		b := p.dn.Batch()
		if err := s.fill(b); err != nil {
			return fmt.Errorf("block %d of the population: %w", i, err)
		}
		mine := b.Mine
		if !until.IsZero() {
			at := start.Add(until.Sub(start) / time.Duration(len(stages)) * time.Duration(i+1))
			if i == len(stages)-1 {
				at = until
			}
			mine = func(ctx context.Context) (Mined, error) { return b.MineAt(ctx, at) }
		}
		m, err := mine(ctx)
		if err != nil {
			return fmt.Errorf("block %d of the population: %w", i, err)
		}
		if s.done != nil {
			s.done(m)
		}
	}
	return nil
}

// each makes a stage of a function that cannot fail.
func each(fill func(b *Batch)) stage {
	return stage{fill: func(b *Batch) error { fill(b); return nil }}
}

// errNoAccount: an agent's owner is not one of the devnet's accounts.
var errNoAccount = errors.New("owner is not an account of the devnet")

// account finds the key of an address.
func (d *Devnet) account(a common.Address) (Account, error) {
	for _, k := range d.keys {
		if k.Address == a {
			return k, nil
		}
	}
	return Account{}, fmt.Errorf("%s: %w", a, errNoAccount)
}
