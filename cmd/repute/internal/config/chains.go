package config

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"repute"
	"repute/contracts"
	"repute/indexer"
	"repute/indexer/node"
)

// ChainConfig names one chain: a known network by name or id, or a custom one with every
// address.
type ChainConfig struct {
	// Name of a network that repute chains lists, or of your own.
	Name string `yaml:"name"`
	// Chain id of a custom chain.
	ID uint64 `yaml:"id"`
	// Address of the Identity Registry of a custom chain.
	Identity string `yaml:"identity"`
	// Address of the Reputation Registry of a custom chain.
	Reputation string `yaml:"reputation"`
	// Contracts whose validations count. The word listed, alone or in the list, stores those of
	// these contracts only; any, the default, stores all. "gateway ADDRESS BLOCK" is a feedback gateway, deployed at
	// BLOCK or later, whose ratings belong to the payers of its tickets.
	Validations validators `yaml:"validations"`
	// Block at or before the deployment of the Identity Registry.
	StartBlock *uint64 `yaml:"start_block"`
	// JSON-RPC URL, or a list of them: http, https, ws or wss.
	RPC URLs `yaml:"rpc"`
	// Blocks to finality where the node names no finalized block, or its head as one. 0: 64,
	// and 256 where it names its head.
	Depth uint64 `yaml:"finality_depth"`
	// What the blooms of headers are used for. hint, the default: a block whose bloom names an
	// event that did not come is read again. strict: it is stored only once its receipts show
	// what it holds. off: nothing.
	Bloom string `yaml:"bloom"`
	// JSON-RPC calls per second that compare the index with the chain; 50 headers count as one.
	// 0: 25. Negative: none, except to read what a contract emitted before it was listed.
	VerifyRate float64 `yaml:"verify_rate"`
	// Tokens that payments count in, a dollar each, in addition to the USDC that is known of the
	// chain: "ADDRESS SYMBOL DECIMALS".
	Stablecoins []string `yaml:"stablecoins"`
}

// Followed is a chain with the way to reach it.
type Followed struct {
	repute.Chain
	RPC        []string
	Depth      uint64
	VerifyRate float64
	Bloom      indexer.Bloom
	Listed     bool // only validations of the allow-list are stored
	Coins      []repute.Stablecoin
}

// URLs are the endpoints of one chain; in YAML also a single string.
type URLs []string

// UnmarshalYAML reads a URL or a list of them.
func (u *URLs) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return n.Decode((*[]string)(u))
	}
	*u = nil
	if n.Value != "" {
		*u = URLs{n.Value}
	}
	return nil
}

// check refuses what no endpoint can be behind, before anything is opened. URLs are numbered in errors and not quoted:
// the path of an endpoint is often its key.
func (u URLs) check(chain string) error {
	if len(u) == 0 {
		return repute.Invalid("rpc", "no JSON-RPC URL for chain "+chain, "add --rpc URL or rpc: URL to its entry")
	}
	for i, url := range u {
		if slices.Contains(u[:i], url) {
			return repute.Invalid("rpc", fmt.Sprintf("URL %d of chain %s is listed twice", i+1, chain),
				"list each endpoint once")
		}
		endpoint, err := node.New(url, node.Options{})
		if err != nil {
			return fmt.Errorf("URL %d of chain %s: %w", i+1, chain, err)
		}
		endpoint.Close()
		if strings.Contains(url, "…") {
			return repute.Invalid("rpc", fmt.Sprintf("URL %d of chain %s contains …, where a part was left out", i+1,
				chain),
				"give the whole URL of an endpoint")
		}
	}
	return nil
}

// validators says which validation contracts count and which are stored. In YAML
// it is a list of trusted addresses, empty for a known deployment's own, that may
// hold one of two words: any, the default, stores the validations of every
// contract, listed those of trusted ones only. A word alone needs no list. It may
// also hold feedback gateways, which are lists of the same chain's contracts.
type validators struct {
	trusted  []string // nil: those of the known deployment
	gateways []string // as "gateway ADDRESS BLOCK"
	listed   bool
}

// UnmarshalYAML reads a word or a list.
func (v *validators) UnmarshalYAML(n *yaml.Node) error {
	var list []string
	if n.Kind == yaml.ScalarNode {
		if list = []string{n.Value}; n.Value != "any" && n.Value != "listed" {
			return fmt.Errorf("line %d: validations: %q is neither any, listed nor a list of addresses", n.Line,
				n.Value)
		}
	} else if err := n.Decode(&list); err != nil {
		return err
	}
	v.listed = slices.Contains(list, "listed")
	if v.listed && slices.Contains(list, "any") {
		return fmt.Errorf("line %d: validations: both any and listed", n.Line)
	}
	v.gateways = slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !namesGateway(s) })
	addresses := slices.DeleteFunc(slices.Clone(list),
		func(s string) bool { return s == "any" || s == "listed" || namesGateway(s) })
	if len(addresses) > 0 || len(list) == 0 {
		v.trusted = addresses
	}
	return nil
}

// pick is the flag --chain: each use begins another chain.
type pick struct{ *Flags }

// String is empty: the flag has no default to show.
func (p pick) String() string { return "" }

// Type is what help calls the value.
func (p pick) Type() string { return "name" }

// Set begins a chain.
func (p pick) Set(name string) error {
	p.Chains = append(p.Chains, ChainConfig{Name: name})
	return nil
}

// reach is the flag --rpc: each use is another endpoint of the chain before it.
type reach struct{ *Flags }

// String is empty: URLs may hold keys and are shown nowhere.
func (r reach) String() string { return "" }

// Type is what help calls the value.
func (r reach) Type() string { return "URL" }

// Set adds an endpoint. It never fails: the error would quote the URL, which may
// hold a key.
func (r reach) Set(url string) error {
	if n := len(r.Chains); n > 0 {
		r.Chains[n-1].RPC = append(r.Chains[n-1].RPC, url)
	} else {
		r.stray = true
	}
	return nil
}

// Followed resolves the configured chains, presets filled in. Every chain MUST have endpoints. A chain that two entries
// mean, one by its name and one by its id, is refused.
func (c *Config) Followed() ([]Followed, error) {
	var out []Followed
	seen := map[uint64]bool{}
	for _, cc := range c.Chains {
		chain, err := cc.Resolve()
		if err != nil {
			return nil, err
		}
		if err := cc.RPC.check(chain.Name); err != nil {
			return nil, err
		}
		if err := indexer.Bloom(cc.Bloom).Check(); err != nil {
			return nil, fmt.Errorf("chain %s: %w", chain.Name, err)
		}
		coins, err := cc.coins(chain)
		if err != nil {
			return nil, err
		}
		if seen[chain.ID] {
			return nil, repute.Invalid("chains", fmt.Sprintf("chain %d is listed twice", chain.ID),
				"list each chain once")
		}
		seen[chain.ID] = true
		out = append(out, Followed{Chain: chain, RPC: cc.RPC, Depth: cc.Depth,
			VerifyRate: cc.VerifyRate, Bloom: indexer.Bloom(cc.Bloom), Listed: cc.Validations.listed, Coins: coins})
	}
	return out, nil
}

// resolved yields the chains whose entries are complete, each with its entry. Entries that the database must complete
// first are left out.
func (c *Config) resolved() iter.Seq2[ChainConfig, repute.Chain] {
	return func(yield func(ChainConfig, repute.Chain) bool) {
		for _, cc := range c.Chains {
			if chain, err := cc.Resolve(); err == nil && !yield(cc, chain) {
				return
			}
		}
	}
}

// Reachable returns the endpoints of all configured chains that have any.
func (c *Config) Reachable() (map[uint64][]string, error) {
	out := map[uint64][]string{}
	for _, cc := range c.Chains {
		if len(cc.RPC) == 0 {
			continue
		}
		chain, err := cc.Resolve()
		if err == nil {
			err = cc.RPC.check(chain.Name)
		}
		if err != nil {
			return nil, err
		}
		out[chain.ID] = cc.RPC
	}
	return out, nil
}

// key is what the entry calls its chain: a name, or an id.
func (cc ChainConfig) key() string {
	if cc.Name == "" {
		return fmt.Sprint(cc.ID)
	}
	return cc.Name
}

// Calls tells whether the entry means chain c. Names are compared without regard to case. An id in the entry decides
// alone, whatever its name is.
func (cc ChainConfig) Calls(c repute.Chain) bool {
	if cc.ID != 0 {
		return cc.ID == c.ID
	}
	return strings.EqualFold(cc.Name, c.Name) || cc.Name == fmt.Sprint(c.ID)
}

// missing are the keys that an entry lacks to stand for a chain of its own.
func (cc ChainConfig) missing() (keys []string) {
	if cc.ID == 0 {
		keys = append(keys, "id")
	}
	if cc.Identity == "" {
		keys = append(keys, "identity")
	}
	if cc.Reputation == "" {
		keys = append(keys, "reputation")
	}
	return keys
}

// Open tells whether the entry is of no known network and does not say all of its own.
func (cc ChainConfig) Open() bool {
	_, known := preset(cc.key())
	return !known && len(cc.missing()) > 0
}

// Complete fills in from chains that somebody else knows, the database or a snapshot, what entries leave open. Entries
// of known networks and complete ones stay as they are. It may be called more than once, as more chains become known.
func (c *Config) Complete(known ...repute.Chain) {
	for i := range c.Chains {
		for _, k := range known {
			if cc := &c.Chains[i]; cc.Open() && cc.Calls(k) {
				cc.fill(k)
			}
		}
	}
}

// fill adds what is known of a chain where the operator left it out. What the operator wrote stays.
func (cc *ChainConfig) fill(k repute.Chain) {
	cc.Name, cc.ID = k.Name, k.ID
	if cc.Identity == "" {
		cc.Identity = k.Identity.Hex()
	}
	if cc.Reputation == "" {
		cc.Reputation = k.Reputation.Hex()
	}
	if cc.Validations.trusted == nil {
		cc.Validations.trusted = []string{}
		for _, v := range k.Validations {
			cc.Validations.trusted = append(cc.Validations.trusted, v.Hex())
		}
	}
	if cc.Validations.gateways == nil {
		for _, g := range k.Gateways {
			cc.Validations.gateways = append(cc.Validations.gateways, gatewayText(g))
		}
	}
	if cc.StartBlock == nil {
		cc.StartBlock = &k.StartBlock
	}
}

// Resolve completes an entry from the known deployments; a custom chain must give id, identity and reputation. The
// error of an unknown chain says both what repute knows and what an own chain needs, because either may be meant.
func (cc ChainConfig) Resolve() (repute.Chain, error) {
	name := cc.key()
	chain, known := preset(name)
	if !known {
		if err := cc.lacks(name); err != nil {
			return chain, err
		}
		chain = repute.Chain{ID: cc.ID, Name: name}
	}
	if cc.ID != 0 && cc.ID != chain.ID {
		return chain, repute.Invalid("id", fmt.Sprintf("%s is chain %d, not %d", name, chain.ID, cc.ID),
			"leave id out for a known chain")
	}
	return chain, cc.overrideAddresses(&chain)
}

// lacks refuses an entry of no known network that does not say all of its own.
func (cc ChainConfig) lacks(name string) error {
	missing := cc.missing()
	switch {
	case len(missing) == 0:
		return nil
	case cc.Identity == "" && cc.Reputation == "":
		return repute.Invalid("chain", "unknown chain "+name,
			"repute chains lists the known ones; one that is stored goes by the name or id that repute status shows; any other needs id, identity, reputation and start_block in the YAML file")
	}
	return repute.Invalid(missing[0], fmt.Sprintf("chain %s has no %s", name, strings.Join(missing, " and no ")),
		"a chain that repute chains does not list needs id, identity, reputation and start_block")
}

// overrideAddresses takes what the entry says over what is known of the network: its registries, its allow-list where
// one is given, its start block. An empty list of validations replaces the known one too: nil is what means that none
// was given.
func (cc ChainConfig) overrideAddresses(chain *repute.Chain) (err error) {
	if cc.Identity != "" {
		if chain.Identity, err = repute.ParseAddress("identity", cc.Identity); err != nil {
			return err
		}
	}
	if cc.Reputation != "" {
		if chain.Reputation, err = repute.ParseAddress("reputation", cc.Reputation); err != nil {
			return err
		}
	}
	if chain.Identity == chain.Reputation {
		return repute.Invalid("reputation", "is the address of identity too", "the two registries are two contracts")
	}
	if cc.Validations.trusted != nil {
		chain.Validations = nil
	}
	for _, s := range cc.Validations.trusted {
		a, err := repute.ParseAddress("validations", s)
		if err != nil {
			return err
		}
		chain.Validations = append(chain.Validations, a)
	}
	if cc.StartBlock != nil {
		chain.StartBlock = *cc.StartBlock
	}
	chain.Gateways, err = gatewaysOf(cc.Validations.gateways, *chain)
	return err
}

// preset looks a known deployment up by name or decimal id.
func preset(name string) (repute.Chain, bool) {
	d, err := contracts.FindDeployment(name)
	if err != nil {
		return repute.Chain{}, false
	}
	return d.Chain(), true
}

// CheckChains refuses chains that cannot be followed as they are configured. An entry that
// only the database can complete is left to Complete, where there is a database.
func (c *Config) CheckChains() error {
	sure := *c
	if c.HasDatabase() {
		sure.Chains = slices.DeleteFunc(slices.Clone(c.Chains), ChainConfig.Open)
	}
	_, err := sure.Followed()
	return err
}
