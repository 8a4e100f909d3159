// Package population lets agents, clients and validators live on a devnet: they register with
// documents of every form, rate, respond, validate and move, as on a public chain. Who is good and who
// rates whom comes from the populations of package attack.
//
// Populate writes a whole history, and Tick makes one block of a little more activity. A history is a list of
// stages, each of which fills one block; the order is that of causes, because who is rated must be registered.
// The cast says which accounts play which part, and a Form how an agent's URI leads to its document, or fails
// to. What public chains hold and careless readers trip over is there too: bytes that are no text, values of 38
// digits, files that give orders to their readers, a ring of wallets that praise one agent.
//
// The same seed on the same devnet gives the same blocks. A Population remembers what was sent, not what the
// chain holds: after a reorganization it may act on what is undone, and such a transaction reverts.
package population

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/devnet"
	"repute/internal/attack"
)

// Options configure Populate.
type Options struct {
	Documents *devnet.Documents // required
	// Seed decides everything else. The same seed on the same devnet and document URLs gives the same
	// blocks.
	Seed uint64
	// Until is the time of the last block, the others being spread evenly before it; zero makes them
	// follow as Mine does. Seconds' precision.
	Until time.Time
}

// Population is who lives on a populated chain and what was sent for them. What the chain holds is
// read with View: reorganizations may undo transactions. Its methods belong to one goroutine.
type Population struct {
	Agents      []Agent
	Watchtowers []devnet.Account // the clients that measure; fit to be roots of trust
	Ring        []devnet.Account // fresh wallets that praise one agent
	Praised     uint64           // that agent

	dn       *devnet.Devnet
	chain    repute.Chain
	docs     *devnet.Documents
	rng      *rand.Rand
	cast     cast
	ratings  []rating
	requests []request
	payments []payment
	pages    int   // numbers documents, so that each has its own path
	tasks    int   // numbers validation requests
	failed   error // the first failure of a document; no block is made after it
}

// Agent is an agent as it was registered and changed since.
type Agent struct {
	ID     uint64
	Name   string
	Owner  devnet.Account
	Wallet common.Address // zero when cleared
	URI    string
	Form   Form
	// Quality, 0 to 1, is how well the agent works: what honest clients rate.
	Quality float64
}

// rating is a rating that was sent, with its index.
type rating struct {
	devnet.Rating
	client  devnet.Account
	index   uint64
	revoked bool
}

// request is a validation request that was sent.
type request struct {
	validator devnet.Account
	hash      common.Hash
}

// payment is what a client paid to an agent's wallet.
type payment struct {
	client devnet.Account
	agent  uint64
	to     common.Address
	tx     common.Hash // zero until mined
}

// stage fills one block of a population's history. A stage runs when the blocks before it are mined, so that it may use
// what they changed; a document that cannot be published sets failed, and the block is not made.
type stage func(b *devnet.Batch)

// Populate writes the history of a population onto the chain: some fifty agents with documents of
// every form, broken ones among them, ratings, revocations, responses, a ring of fresh wallets,
// validations, transfers and updates.
func Populate(ctx context.Context, dn *devnet.Devnet, o Options) (*Population, error) {
	c := newCast(dn)
	p := &Population{Watchtowers: c.clients[:watchtowers], Ring: c.ring, dn: dn, chain: dn.Chain(), docs: o.Documents,
		cast: c, rng: rand.New(rand.NewPCG(o.Seed, 8004))}
	first, err := dn.View().AgentCount(ctx)
	if err != nil {
		return nil, err
	}
	forms := firstForms()
	world := attack.Population(len(forms), 0, o.Seed)
	p.settle(first, forms, world)
	return p, p.live(ctx, p.history(world), o.Until)
}

// history is the order of things: who is rated must be registered, and who revokes must have rated.
func (p *Population) history(world *attack.World) (stages []stage) {
	stages = append(stages, p.registrations()...)
	stages = append(stages, p.setWallets, p.setMetadata, p.setApprovals, p.pay)
	stages = append(stages, p.rateAll(world)...)
	half := len(p.Ring) / 2
	stages = append(stages, p.praiseBy(p.Ring[:half]), p.praiseBy(p.Ring[half:]), p.rateOddly, p.respondToSome,
		p.revokeSome, p.respondLate, p.requestSome)
	for _, n := range []int{17, 5, 2} { // some are answered again: the latest answer counts
		stages = append(stages, func(b *devnet.Batch) {
			for i := range n {
				p.validate(b, &p.requests[i])
			}
		})
	}
	return append(stages, p.transferSome, p.setLateWallet, p.replaceURIs)
}

// live mines the stages, spread up to until. The error is repute.ErrInvalid where blocks could not have different
// seconds. A failure leaves the blocks before it on the chain. The first block with payments has nothing else, so that
// its receipts are those of the payments.
func (p *Population) live(ctx context.Context, stages []stage, until time.Time) error {
	start := p.dn.Head().Time
	if need := time.Duration(len(stages)) * time.Second; !until.IsZero() && until.Sub(start) < need {
		return repute.Invalid("Until", "too near", fmt.Sprintf("at least %s after block %d", need, p.dn.Head().Number))
	}
	for i, fill := range stages {
		b := p.dn.Batch()
		mine := b.Mine
		if !until.IsZero() {
			at := start.Add(until.Sub(start) / time.Duration(len(stages)) * time.Duration(i+1))
			if i == len(stages)-1 {
				at = until
			}
			mine = func(ctx context.Context) (devnet.Mined, error) { return b.MineAt(ctx, at) }
		}
		if fill(b); p.failed != nil {
			return p.failed
		}
		m, err := mine(ctx)
		if err != nil {
			return fmt.Errorf("block %d of the population: %w", i, err)
		}
		if len(p.payments) > 0 && p.payments[0].tx == (common.Hash{}) {
			for j, r := range m.Receipts {
				p.payments[j].tx = r.TxHash
			}
		}
	}
	return nil
}
