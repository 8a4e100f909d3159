package wallet

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/orchestrator/safety"
	"repute/orchestrator/wallet/keys"
	"repute/orchestrator/wallet/rules"
	"repute/store"
)

// Config names the keys and chains of a wallet.
type Config struct {
	Chains []ChainConfig
	// Registrar is the slug of the agent whose runs may request consents. Empty: no run may.
	Registrar string
	// Pool returns the pool of a chain's endpoints, in the order of their URLs, which other readers of
	// the chain may share. The wallet closes it only where Pool is nil: it then opens its own pools.
	Pool func(chainID uint64, urls []string) (*node.Pool, error)
	Log  *slog.Logger // nil discards
}

// ChainConfig configures one chain. Only ChainID and RPC are required; without keys nothing is
// sent.
type ChainConfig struct {
	ChainID uint64
	// RPC are URLs of HTTP endpoints. Reads that decide about money go to all of them: at least two
	// must return the same answer, and none another one. A single endpoint is trusted alone.
	RPC []string
	// Treasury is the OpenFiTreasury from which agents spend.
	Treasury common.Address
	// Registries are the contracts to which agents write with their own keys.
	Registries safety.Registries
	// Operator signs treasury calls. It is the operator of the agents' policies, or a relayer.
	Operator keys.Config
	// Owner signs changes of the treasury's policies, only for operator actions: no run can use it.
	// The key must not have another use.
	Owner keys.Config
	// Identities sign registry writes, by agent slug. None may be the operator's key.
	Identities map[string]keys.Config
	// Tokens are the tokens in which identities may settle x402 payments. Empty: none.
	Tokens []common.Address
	// Consents are the slugs of identities whose wallets the registrar may bind to agents that it
	// registered. Empty: none.
	Consents []string

	Confirmations uint64        // blocks from the mined one on, including it; 2 when 0
	StuckAfter    time.Duration // until a transaction that is not mined is replaced; 1 min when 0
	Poll          time.Duration // between requests for a receipt; 500 ms when 0
	Patience      time.Duration // for endpoints that fail or contradict each other; 1 min when 0
	// Headroom is how many percent fees may rise above those at the simulation; 100 when 0.
	Headroom       int64
	rules.Ceilings // of fees; the defaults of the chain where they are nil
}

// withDefaults replaces zero values by defaults.
func (c ChainConfig) withDefaults() ChainConfig {
	c.Confirmations = cmp.Or(c.Confirmations, 2)
	c.StuckAfter = cmp.Or(c.StuckAfter, time.Minute)
	c.Poll = cmp.Or(c.Poll, 500*time.Millisecond)
	c.Patience = cmp.Or(c.Patience, time.Minute)
	c.Headroom = cmp.Or(c.Headroom, 100)
	c.Ceilings = c.Ceilings.Or(rules.DefaultCeilings(c.ChainID))
	c.Registries.ChainID = c.ChainID
	return c
}

// check refuses an impossible configuration. field is the key of the chain for errors.
func (c *ChainConfig) check(field string) error {
	switch {
	case c.ChainID == 0:
		return repute.Invalid(field+".chain", "is missing", "the chain's number, e.g. 8453")
	case len(c.RPC) == 0:
		return repute.Invalid(field+".rpc", "is missing", "at least one URL")
	case c.Treasury == common.Address{} && !(c.Operator.None() && c.Owner.None()):
		return repute.Invalid(field+".treasury", "is missing",
			"the address of the OpenFiTreasury that the operator spends from")
	case c.StuckAfter < 0 || c.Poll < 0 || c.Patience < 0 || c.Headroom < 0 || c.Headroom > 10_000:
		return repute.Invalid(field, "has a negative duration or a headroom outside 0 to 10000",
			"leave them out for the defaults")
	}
	return c.Ceilings.Check(field)
}

// Wallet sends transactions. It is safe for concurrent use, and any number of processes
// with the same database may share its keys.
type Wallet struct {
	db        *store.DB
	log       *slog.Logger
	chains    map[uint64]*chain
	registrar string
	ownsPools bool // Close closes the pools
}

// chain is a chain with its keys.
type chain struct {
	ChainConfig
	field      string // name of the chain in the configuration, for errors
	id         *big.Int
	log        *slog.Logger
	pool       *node.Pool
	nodes      []*endpoint // the pool's, in the configured order
	rules      rules.Rules
	operator   keys.Signer            // nil: no treasury calls
	owner      keys.Signer            // nil: no policies are set
	identities map[string]keys.Signer // by slug
	signing    chan struct{}          // held while a nonce is assigned, so that this uses one database connection at most
	oracle     atomic.Int32           // whether the chain has an oracle for data fees
}

// Open reads the keys of a configuration. It makes no request to endpoints. Errors are
// repute.ErrInvalid and contain no part of a key.
func Open(db *store.DB, c Config) (*Wallet, error) {
	w := &Wallet{db: db, log: c.Log, chains: map[uint64]*chain{}, registrar: c.Registrar,
		ownsPools: c.Pool == nil}
	if w.log == nil {
		w.log = slog.New(slog.DiscardHandler)
	}
	for i, conf := range c.Chains {
		field := fmt.Sprintf("orchestrator.wallets[%d]", i)
		if err := conf.check(field); err != nil {
			w.Close()
			return nil, err
		}
		if w.chains[conf.ChainID] != nil {
			w.Close()
			return nil, repute.Invalid(field+".chain", fmt.Sprintf("%d stands there twice", conf.ChainID),
				"one entry per chain")
		}
		opened, err := openChain(&c, w.log, field, conf.withDefaults())
		w.chains[conf.ChainID] = opened
		if err != nil {
			w.Close()
			return nil, err
		}
		if len(conf.RPC) == 1 && opened.signs() {
			w.log.Warn("transactions: one endpoint alone is trusted about fees, nonces, balances and policies; configure a second one", "chain", conf.ChainID, "field", field+".rpc")
		}
	}
	return w, nil
}

// openChain opens the endpoints and keys of a chain. With an error it also returns the opened part,
// so that the caller can close it.
func openChain(of *Config, log *slog.Logger, field string, conf ChainConfig) (*chain, error) {
	c := &chain{ChainConfig: conf, log: log, field: field, id: new(big.Int).SetUint64(conf.ChainID),
		identities: map[string]keys.Signer{}, signing: make(chan struct{}, 1)}
	c.rules = rules.Rules{ChainID: c.id, Treasury: conf.Treasury, Registries: conf.Registries, Tokens: conf.Tokens,
		Ceilings: conf.Ceilings}
	if err := c.openEndpoints(of, log); err != nil {
		return c, err
	}
	var err error
	if c.operator, err = conf.Operator.Open(log, field+".operator"); err != nil {
		return c, err
	}
	if c.owner, err = conf.Owner.Open(log, field+".owner"); err != nil {
		return c, err
	}
	if c.owner != nil && c.operator != nil && c.owner.Address() == c.operator.Address() {
		return c, repute.Invalid(field+".owner", "is the operator's key",
			"a key of its own: who spends must not set the caps")
	}
	for slug, sc := range conf.Identities {
		s, err := sc.Open(log, field+".identities."+slug)
		if err != nil {
			return c, err
		}
		if s == nil {
			return c, repute.Invalid(field+".identities."+slug, "names no key",
				"a variable, a file, a keystore or a remote signer")
		}
		if c.operator != nil && s.Address() == c.operator.Address() {
			return c, repute.Invalid(field+".identities."+slug, "is the operator's key",
				"a key of its own: the operator signs treasury calls alone")
		}
		if c.owner != nil && s.Address() == c.owner.Address() {
			return c, repute.Invalid(field+".identities."+slug, "is the key of the treasury's owner",
				"a key of its own: no agent has the owner's")
		}
		c.identities[slug] = s
	}
	return c, c.checkConsents(field)
}

// openEndpoints opens the chain's pool.
func (c *chain) openEndpoints(of *Config, log *slog.Logger) (err error) {
	for i, url := range c.RPC {
		if err := checkURL(fmt.Sprintf("%s.rpc[%d]", c.field, i), url); err != nil {
			return err
		}
	}
	open := of.Pool
	if open == nil {
		open = func(chainID uint64, urls []string) (*node.Pool, error) {
			return node.OpenPool(urls, node.Options{}, node.PoolOptions{ChainID: chainID, Log: log})
		}
	}
	if c.pool, err = open(c.ChainID, c.RPC); err != nil {
		return err
	}
	timeout := callTimeout
	if len(c.RPC) > 1 {
		timeout = failoverTimeout
	}
	for i, n := range c.pool.Members() {
		c.nodes = append(c.nodes, &endpoint{name: fmt.Sprintf("endpoint %d of chain %d", i+1, c.ChainID), place: i,
			log: log,
			rpc: n, timeout: timeout})
	}
	return nil
}

// checkConsents refuses consents for slugs that have no key.
func (c *chain) checkConsents(field string) error {
	for i, slug := range c.Consents {
		if c.identities[slug] == nil {
			return repute.Invalid(fmt.Sprintf("%s.consents[%d]", field, i), fmt.Sprintf("%.80q has no key here", slug),
				"a slug of identities")
		}
	}
	return nil
}

// signs reports whether any key is configured.
func (c *chain) signs() bool { return c.operator != nil || c.owner != nil || len(c.identities) > 0 }

// Close ends the connections.
func (w *Wallet) Close() {
	for _, c := range w.chains {
		if w.ownsPools && c != nil && c.pool != nil {
			c.pool.Close()
		}
	}
}

// Operator returns the address that signs treasury calls on a chain; repute.ErrNotFound if there is
// none.
func (w *Wallet) Operator(chainID uint64) (common.Address, error) {
	c, err := w.on(chainID)
	if err != nil {
		return common.Address{}, err
	}
	if c.operator == nil {
		return common.Address{}, &repute.MissingError{What: fmt.Sprintf("operator key of chain %d", chainID),
			Why: "is not configured"}
	}
	return c.operator.Address(), nil
}

// Identity returns the address that signs an agent's registry writes on a chain; repute.ErrNotFound
// if there is none.
func (w *Wallet) Identity(chainID uint64, slug string) (common.Address, error) {
	s, err := w.IdentityKey(chainID, slug)
	if err != nil {
		return common.Address{}, err
	}
	return s.Address(), nil
}

// on returns the chain of an id. repute.ErrNotFound when it is not configured.
func (w *Wallet) on(chainID uint64) (*chain, error) {
	c := w.chains[chainID]
	if c == nil {
		return nil, &repute.MissingError{What: fmt.Sprintf("chain %d", chainID),
			Why: "is not configured for transactions"}
	}
	return c, nil
}

// Read calls a contract's view function at the newest block that two endpoints have.
// repute.ErrInvalid where the contract refuses, repute.ErrUnavailable where too few endpoints
// answer, or two disagree.
func (w *Wallet) Read(ctx context.Context, chainID uint64, to common.Address, data []byte) ([]byte, error) {
	return w.ReadFrom(ctx, chainID, common.Address{}, to, data)
}
