package main

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/indexer/node"
	"repute/indexer/treasury"
	"repute/orchestrator"
	"repute/orchestrator/operate"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
)

// walletConfig says with which keys the orchestrator sends transactions on one chain. A key
// is named by env:NAME, file:PATH, keystore:PATH?password_file=PATH or
// https://SIGNER#ADDRESS.
type walletConfig struct {
	// Name or id of the chain: of an entry of chains, or of a network that repute chains lists.
	Chain string `yaml:"chain"`
	// JSON-RPC URLs, of different providers. Empty: those of the chain's entry.
	RPC urls `yaml:"rpc"`
	// Address of the OpenFiTreasury that agents spend from.
	Treasury string `yaml:"treasury"`
	// Key that signs treasury calls.
	Operator keyRef `yaml:"operator"`
	// Key of the treasury's owner, which sets its policies.
	Owner keyRef `yaml:"owner"`
	// Keys that sign registry writes, by agent slug.
	Identities map[string]keyRef `yaml:"identities"`
	// Slugs of identities whose wallets the registrar may bind to agents that it registered.
	Consents []string `yaml:"consents"`
	// Most that is offered per gas, such as "5 gwei". Empty: the chain's default.
	MaxFeePerGas string `yaml:"max_fee_per_gas"`
	// Most that a transaction may cost, with the fee for its data. Empty: the chain's default.
	MaxTransactionFee string `yaml:"max_transaction_fee"`
}

// checkWallets refuses what can be seen to be wrong without keys and nodes.
func (c *config) checkWallets() error {
	o := &c.Orchestrator
	for i := range o.Wallets {
		field := fmt.Sprintf("orchestrator.wallets[%d]", i)
		if o.Wallets[i].Chain == "" {
			return repute.Invalid(field+".chain", "is missing", "name or id of a chain, e.g. base")
		}
		if _, err := o.Wallets[i].on(field, repute.Chain{ID: 1}, nil); err != nil {
			return err
		}
	}
	return nil
}

// checkHands refuses keys that cannot be read and agents that cannot be made of them. Where
// a chain is known to the database alone, the service does so when it has that.
func (c *config) checkHands(ctx context.Context) error {
	if !c.has("orchestrator") || c.hasDatabase() && slices.ContainsFunc(c.Chains, chainConfig.open) {
		return nil
	}
	list, err := c.wallets()
	if err != nil {
		return err
	}
	w, err := wallet.Open(nil, wallet.Config{Chains: list})
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = c.builtins(hands{registries: c.registries(list)})
	return err
}

// on is the wallet's configuration for a chain.
func (w *walletConfig) on(field string, chain repute.Chain, rpc urls) (out wallet.ChainConfig, err error) {
	out = wallet.ChainConfig{ChainID: chain.ID, RPC: w.RPC, Identities: map[string]keys.Config{}, Consents: w.Consents,
		Registries: orchestrator.Registries{ChainID: chain.ID, Identity: chain.Identity, Reputation: chain.Reputation, Validations: chain.Validations}}
	if len(out.RPC) == 0 {
		out.RPC = rpc
	}
	if out.Ceilings, err = w.ceilings(field); err != nil {
		return out, err
	}
	if w.Treasury != "" {
		if out.Treasury, err = repute.ParseAddress(field+".treasury", w.Treasury); err != nil {
			return out, err
		}
	}
	if out.Operator, err = w.Operator.signer(field + ".operator"); err != nil {
		return out, err
	}
	if out.Owner, err = w.Owner.signer(field + ".owner"); err != nil {
		return out, err
	}
	for slug, key := range w.Identities {
		if out.Identities[slug], err = key.signer(field + ".identities." + slug); err != nil {
			return out, err
		}
	}
	return out, nil
}

// ceilings are those that are configured, nil where they are not.
func (w *walletConfig) ceilings(field string) (out wallet.Ceilings, err error) {
	for _, f := range []struct {
		name, text string
		into       **big.Int
	}{{"max_fee_per_gas", w.MaxFeePerGas, &out.MaxFeePerGas}, {"max_transaction_fee", w.MaxTransactionFee, &out.MaxTransactionFee}} {
		if f.text == "" {
			continue
		}
		if *f.into, err = coins(field+"."+f.name, f.text); err != nil {
			return out, err
		}
	}
	return out, nil
}

// coins reads an amount of a chain's coin in wei: "20 gwei", "0.01 ether", or digits of wei.
func coins(field, text string) (*big.Int, error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	digits, known := map[string]int{"": 0, "wei": 0, "gwei": 9, "ether": 18}[strings.TrimSpace(unit)]
	whole, fraction, _ := strings.Cut(number, ".")
	if known && len(fraction) <= digits && whole != "" {
		if wei, err := wallet.Amount(field, whole+fraction+strings.Repeat("0", digits-len(fraction))); err == nil {
			return wei, nil
		}
	}
	return nil, repute.Invalid(field, fmt.Sprintf("%.60q is no amount", text), `wei, or with a unit as "20 gwei" or "0.01 ether"`)
}

// chainOf finds the chain that a wallet means, and the endpoints of its entry.
func (c *config) chainOf(field, name string) (repute.Chain, urls, error) {
	for _, cc := range c.Chains {
		chain, err := cc.resolve()
		if err == nil && (cc.key() == name || chain.Name == name || strconv.FormatUint(chain.ID, 10) == name) {
			return chain, cc.RPC, nil
		}
	}
	if chain, known := preset(name); known {
		return chain, nil, nil
	}
	id, err := repute.ParseChainID(name)
	if err != nil {
		return repute.Chain{}, nil, repute.Invalid(field+".chain", fmt.Sprintf("%.60q is no chain that is known", name), "an entry of chains, a network that repute chains lists, or an id")
	}
	return repute.Chain{ID: id}, nil, nil
}

// wallets completes what is configured by what is known of the chains.
func (c *config) wallets() (out []wallet.ChainConfig, err error) {
	for i := range c.Orchestrator.Wallets {
		w, field := &c.Orchestrator.Wallets[i], fmt.Sprintf("orchestrator.wallets[%d]", i)
		chain, rpc, err := c.chainOf(field, w.Chain)
		if err != nil {
			return nil, err
		}
		on, err := w.on(field, chain, rpc)
		if err != nil {
			return nil, err
		}
		out = append(out, on)
	}
	return out, nil
}

// twoChains are the chain of identities, which is default_chain or the only chain there is,
// and the chain of the treasury: that of the first wallet with one.
func (c *config) twoChains(wallets []wallet.ChainConfig) (trust, execution uint64) {
	trust = c.DefaultChain
	for _, cc := range c.Chains {
		if chain, err := cc.resolve(); err == nil && trust == 0 && len(c.Chains) == 1 {
			trust = chain.ID
		}
	}
	for _, w := range wallets {
		if execution == 0 && (w.Treasury != common.Address{}) {
			execution = w.ChainID
		}
		if trust == 0 && len(wallets) == 1 {
			trust = w.ChainID
		}
	}
	if execution == 0 {
		execution = trust
	}
	return trust, execution
}

// registries are those of all chains that are named anywhere.
func (c *config) registries(wallets []wallet.ChainConfig) (out []orchestrator.Registries) {
	seen := map[uint64]bool{}
	for _, w := range wallets {
		out = append(out, w.Registries)
		seen[w.ChainID] = true
	}
	for _, cc := range c.Chains {
		if chain, err := cc.resolve(); err == nil && !seen[chain.ID] {
			out = append(out, orchestrator.Registries{ChainID: chain.ID, Identity: chain.Identity, Reputation: chain.Reputation, Validations: chain.Validations})
		}
	}
	return out
}

// tokens are those of the chains that transactions are sent on whose symbol and decimals are
// known: of the chain's entry, or built in.
func (c *config) tokens(wallets []wallet.ChainConfig) (out []repute.Stablecoin, err error) {
	for _, w := range wallets {
		entry := chainConfig{}
		for _, cc := range c.Chains {
			if chain, err := cc.resolve(); err == nil && chain.ID == w.ChainID {
				entry = cc
			}
		}
		known, err := entry.coins(repute.Chain{ID: w.ChainID, Name: entry.key()})
		if err != nil {
			return nil, err
		}
		out = append(out, known...)
	}
	return out, nil
}

// treasuries are those whose events are indexed.
func (c *config) treasuries(wallets []wallet.ChainConfig) (out []followedTreasury) {
	for i, w := range wallets {
		conf := &c.Orchestrator.Wallets[i]
		chain, _, err := c.chainOf("", conf.Chain)
		if err != nil || (w.Treasury == common.Address{}) {
			continue
		}
		out = append(out, followedTreasury{chain, w.RPC, w.Treasury, max(chain.StartBlock, 1)})
	}
	return out
}

// followTreasury keeps a treasury's events up to date until ctx ends.
func (s *service) followTreasury(ctx context.Context, t followedTreasury) error {
	var nodes []*node.Node
	for _, url := range t.rpc {
		n, err := node.New(url, node.Options{Count: s.rpc.CountRPC(t.chain.ID)})
		if err != nil {
			return err
		}
		nodes = append(nodes, n)
	}
	pool := node.NewPool(nodes, node.PoolOptions{ChainID: t.chain.ID, Log: s.log})
	defer pool.Close()
	return treasury.New(s.db, t.chain.ID, t.at, t.from, pool, treasury.Options{Log: s.log}).Run(ctx)
}

// hands are what the orchestrator sends transactions with.
type hands struct {
	wallet           *wallet.Wallet // nil: none is configured
	operator         *operate.Operator
	trust, execution uint64
	registries       []orchestrator.Registries
	treasuries       []followedTreasury
	tokens           []repute.Stablecoin // that approvals name amounts of
}

// followedTreasury is a treasury whose events are indexed.
type followedTreasury struct {
	chain repute.Chain
	rpc   []string
	at    common.Address
	from  uint64
}

// openHands reads the keys.
func (s *service) openHands(ctx context.Context) (h hands, err error) {
	list, err := s.config.wallets()
	if err != nil {
		return h, err
	}
	h.trust, h.execution = s.config.twoChains(list)
	h.registries = s.config.registries(list)
	h.treasuries = s.config.treasuries(list)
	if h.tokens, err = s.config.tokens(list); err != nil || len(list) == 0 {
		return h, err
	}
	if h.wallet, err = wallet.Open(s.db, wallet.Config{Chains: list, Registrar: s.config.registrar(), Log: s.log}); err != nil {
		return h, err
	}
	c := &s.config.Orchestrator
	h.operator = operate.New(s.db, h.wallet, operate.Options{Policy: c.policyNow, Lenient: c.Development, TrustChain: h.trust, ExecutionChain: h.execution,
		PublicURL: c.PublicURL, Log: s.log})
	return h, nil
}

// run looks after what was begun, until ctx ends.
func (h *hands) run(ctx context.Context) error {
	if h.wallet == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- h.operator.Run(ctx) }()
	err := h.wallet.Run(ctx)
	<-ended
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// keys says which address agents of the program sign with; nil where there is no wallet.
func (h *hands) keys() func(uint64, string) (common.Address, error) {
	if h.wallet == nil {
		return nil
	}
	return h.wallet.Identity
}

// close ends the connections.
func (h *hands) close() {
	if h.wallet != nil {
		h.wallet.Close()
	}
}

// chain is the wallet as runs see it; nil where there is none.
func (h *hands) chain() orchestrator.Chain {
	if h.wallet == nil {
		return nil
	}
	return h.wallet
}

// names are who an address of a chain is by the configuration: treasury, operator, and the
// wallets that agents sign with.
func (h hands) names(chainID uint64, a common.Address) (out []string) {
	if h.wallet == nil {
		return nil
	}
	if _, treasury, err := h.wallet.Contracts(chainID); err == nil && a == treasury && a != (common.Address{}) {
		out = append(out, "treasury")
	}
	if operator, err := h.wallet.Operator(chainID); err == nil && a == operator {
		out = append(out, "operator of the treasury")
	}
	if slug, err := h.wallet.IdentityOf(chainID, a); err == nil && slug != "" {
		out = append(out, "wallet of agent "+slug)
	}
	return out
}
