package config

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/safety"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/orchestrator/wallet/rules"
)

// walletConfig says with which keys the orchestrator sends transactions on one chain. A key
// is named by env:NAME, file:PATH, keystore:PATH?password_file=PATH or
// https://SIGNER#ADDRESS.
type walletConfig struct {
	// Name or id of the chain: of an entry of chains, or of a network that repute chains lists.
	Chain string `yaml:"chain"`
	// JSON-RPC URLs, of different providers. Empty: those of the chain's entry.
	RPC URLs `yaml:"rpc"`
	// Address of the OpenFiTreasury that agents spend from.
	Treasury string `yaml:"treasury"`
	// Key that signs treasury calls.
	Operator keyRef `yaml:"operator"`
	// Key of the treasury's owner, which sets its policies.
	Owner keyRef `yaml:"owner"`
	// Keys that sign registry writes, settlements of x402 payments and payments, by agent slug.
	Identities map[string]keyRef `yaml:"identities"`
	// Slugs of identities whose wallets the registrar may bind to agents that it registered.
	Consents []string `yaml:"consents"`
	// Most that is offered per gas, such as "5 gwei". Empty: the chain's default.
	MaxFeePerGas string `yaml:"max_fee_per_gas"`
	// Most that a transaction may cost, with the fee for its data. Empty: the chain's default.
	MaxTransactionFee string `yaml:"max_transaction_fee"`
}

// checkWallets refuses what can be seen to be wrong without keys and nodes. The chain is not known yet, so that a
// placeholder stands for it.
func (c *Config) checkWallets() error {
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

// on is the wallet's configuration for a chain.
func (w *walletConfig) on(field string, chain repute.Chain, rpc URLs) (out wallet.ChainConfig, err error) {
	out = wallet.ChainConfig{ChainID: chain.ID, RPC: w.RPC, Identities: map[string]keys.Config{}, Consents: w.Consents,
		Registries: safety.Registries{ChainID: chain.ID, Identity: chain.Identity, Reputation: chain.Reputation,
			Validations: chain.Validations}}
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
func (w *walletConfig) ceilings(field string) (out rules.Ceilings, err error) {
	for _, f := range []struct {
		name, text string
		into       **big.Int
	}{{"max_fee_per_gas", w.MaxFeePerGas, &out.MaxFeePerGas},
		{"max_transaction_fee", w.MaxTransactionFee, &out.MaxTransactionFee}} {
		if f.text == "" {
			continue
		}
		if *f.into, err = coins(field+"."+f.name, f.text); err != nil {
			return out, err
		}
	}
	return out, nil
}

// coins reads an amount of a chain's coin in wei: "20 gwei", "0.01 ether", or digits of wei. More digits after the
// point than the unit has are refused and not rounded.
func coins(field, text string) (*big.Int, error) {
	number, unit, _ := strings.Cut(strings.TrimSpace(text), " ")
	digits, known := map[string]int{"": 0, "wei": 0, "gwei": 9, "ether": 18}[strings.TrimSpace(unit)]
	whole, fraction, _ := strings.Cut(number, ".")
	if known && len(fraction) <= digits && whole != "" {
		if wei, err := rules.Amount(field, whole+fraction+strings.Repeat("0", digits-len(fraction))); err == nil {
			return wei, nil
		}
	}
	return nil, repute.Invalid(field, fmt.Sprintf("%.60q is no amount", text),
		`wei, or with a unit as "20 gwei" or "0.01 ether"`)
}

// ChainOf finds the chain that a wallet means, and the endpoints of its entry. An id of which nothing is known is a
// chain with nothing but the id: a treasury can be on a chain that is not indexed.
func (c *Config) ChainOf(field, name string) (repute.Chain, URLs, error) {
	for cc, chain := range c.resolved() {
		if cc.key() == name || chain.Name == name || strconv.FormatUint(chain.ID, 10) == name {
			return chain, cc.RPC, nil
		}
	}
	if chain, known := preset(name); known {
		return chain, nil, nil
	}
	id, err := repute.ParseChainID(name)
	if err != nil {
		return repute.Chain{}, nil, repute.Invalid(field+".chain", fmt.Sprintf("%.60q is no chain that is known", name),
			"an entry of chains, a network that repute chains lists, or an id")
	}
	return repute.Chain{ID: id}, nil, nil
}

// Wallets completes what is configured by what is known of the chains.
func (c *Config) Wallets() (out []wallet.ChainConfig, err error) {
	for i := range c.Orchestrator.Wallets {
		w, field := &c.Orchestrator.Wallets[i], fmt.Sprintf("orchestrator.wallets[%d]", i)
		chain, rpc, err := c.ChainOf(field, w.Chain)
		if err != nil {
			return nil, err
		}
		on, err := w.on(field, chain, rpc)
		if err != nil {
			return nil, err
		}
		known, err := c.coinsOn(chain.ID)
		if err != nil {
			return nil, err
		}
		for _, coin := range known {
			on.Tokens = append(on.Tokens, coin.Address)
		}
		out = append(out, on)
	}
	return out, nil
}

// TwoChains are the chain of identities, which is default_chain or the only chain there is, and the chain of the
// treasury: that of the first wallet with one. Each is 0 where it cannot be told.
func (c *Config) TwoChains(wallets []wallet.ChainConfig) (trust, execution uint64) {
	trust = c.DefaultChain
	for _, chain := range c.resolved() {
		if trust == 0 && len(c.Chains) == 1 {
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

// Registries are those of all chains that are named anywhere. Those of wallets come first; the chain of a wallet is not
// listed twice.
func (c *Config) Registries(wallets []wallet.ChainConfig) (out []safety.Registries) {
	seen := map[uint64]bool{}
	for _, w := range wallets {
		out = append(out, w.Registries)
		seen[w.ChainID] = true
	}
	for _, chain := range c.resolved() {
		if !seen[chain.ID] {
			out = append(out, safety.Registries{ChainID: chain.ID, Identity: chain.Identity,
				Reputation: chain.Reputation, Validations: chain.Validations})
		}
	}
	return out
}

// Tokens are those of the chains that transactions are sent on whose symbol and decimals are
// known: of the chain's entry, or built in.
func (c *Config) Tokens(wallets []wallet.ChainConfig) (out []repute.Stablecoin, err error) {
	for _, w := range wallets {
		known, err := c.coinsOn(w.ChainID)
		if err != nil {
			return nil, err
		}
		out = append(out, known...)
	}
	return out, nil
}

// coinsOn are the tokens of a chain whose symbol and decimals are known.
func (c *Config) coinsOn(chainID uint64) ([]repute.Stablecoin, error) {
	entry := ChainConfig{}
	for cc, chain := range c.resolved() {
		if chain.ID == chainID {
			entry = cc
		}
	}
	return entry.coins(repute.Chain{ID: chainID, Name: entry.key()})
}
