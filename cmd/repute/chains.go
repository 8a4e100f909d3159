package main

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"repute"
	"repute/contracts"
	"repute/indexer"
)

// chainConfig names one chain: a preset (name or id) or every address.
type chainConfig struct {
	Name        string        `yaml:"name"`
	ID          uint64        `yaml:"id"`
	Identity    string        `yaml:"identity"`
	Reputation  string        `yaml:"reputation"`
	Validations validators    `yaml:"validations"`
	StartBlock  *uint64       `yaml:"start_block"`
	RPC         urls          `yaml:"rpc"`
	Poll        time.Duration `yaml:"poll"`
	Depth       uint64        `yaml:"finality_depth"` // blocks to finality where the node names no finalized block, or its head as one
	VerifyRate  float64       `yaml:"verify_rate"`    // JSON-RPC calls per second to compare the index with the chain; 0: 25, negative: none
}

// followed is a chain with the way to reach it.
type followed struct {
	repute.Chain
	RPC        []string
	Poll       time.Duration
	Depth      uint64
	VerifyRate float64
	Listed     bool // only validations of the allow-list are stored
}

// urls are the endpoints of one chain; in YAML also a single string.
type urls []string

// UnmarshalYAML reads a URL or a list of them.
func (u *urls) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return n.Decode((*[]string)(u))
	}
	*u = nil
	if n.Value != "" {
		*u = urls{n.Value}
	}
	return nil
}

// check refuses what no endpoint can be behind, before anything is opened.
func (u urls) check(chain string) error {
	if len(u) == 0 {
		return repute.Invalid("rpc", "no JSON-RPC URL for chain "+chain, "add --rpc URL or rpc: URL to its entry")
	}
	for i, url := range u {
		if slices.Contains(u[:i], url) {
			return repute.Invalid("rpc", fmt.Sprintf("URL %d of chain %s is listed twice", i+1, chain), "list each endpoint once")
		}
		node, err := indexer.NewNode(url, indexer.NodeOptions{})
		if err != nil {
			return fmt.Errorf("URL %d of chain %s: %w", i+1, chain, err)
		}
		node.Close()
	}
	return nil
}

// validators says which validation contracts count and which are stored. In YAML
// it is a list of trusted addresses, empty for a known deployment's own, that may
// hold one of two words: any, the default, stores the validations of every
// contract, listed those of trusted ones only. A word alone needs no list.
type validators struct {
	trusted []string // nil: those of the known deployment
	listed  bool
}

// UnmarshalYAML reads a word or a list.
func (v *validators) UnmarshalYAML(n *yaml.Node) error {
	var list []string
	if n.Kind == yaml.ScalarNode {
		if list = []string{n.Value}; n.Value != "any" && n.Value != "listed" {
			return fmt.Errorf("line %d: validations: %q is neither any, listed nor a list of addresses", n.Line, n.Value)
		}
	} else if err := n.Decode(&list); err != nil {
		return err
	}
	v.listed = slices.Contains(list, "listed")
	if v.listed && slices.Contains(list, "any") {
		return fmt.Errorf("line %d: validations: both any and listed", n.Line)
	}
	addresses := slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == "any" || s == "listed" })
	if len(addresses) > 0 || len(list) == 0 {
		v.trusted = addresses
	}
	return nil
}

// pick is the flag --chain: each use begins another chain.
type pick struct{ *flags }

func (p pick) String() string { return "" }
func (p pick) Type() string   { return "name" }

// Set begins a chain.
func (p pick) Set(name string) error {
	p.chains = append(p.chains, chainConfig{Name: name})
	return nil
}

// reach is the flag --rpc: each use is another endpoint of the chain before it.
type reach struct{ *flags }

func (r reach) String() string { return "" }
func (r reach) Type() string   { return "URL" }

// Set adds an endpoint. It never fails: the error would quote the URL, which may
// hold a key.
func (r reach) Set(url string) error {
	if n := len(r.chains); n > 0 {
		r.chains[n-1].RPC = append(r.chains[n-1].RPC, url)
	} else {
		r.stray = true
	}
	return nil
}

// followed resolves the configured chains, presets filled in.
func (c *config) followed() ([]followed, error) {
	var out []followed
	seen := map[uint64]bool{}
	for _, cc := range c.Chains {
		chain, err := cc.resolve()
		if err != nil {
			return nil, err
		}
		if err := cc.RPC.check(chain.Name); err != nil {
			return nil, err
		}
		if seen[chain.ID] {
			return nil, repute.Invalid("chains", fmt.Sprintf("chain %d is listed twice", chain.ID), "list each chain once")
		}
		seen[chain.ID] = true
		out = append(out, followed{Chain: chain, RPC: cc.RPC, Poll: cc.Poll, Depth: cc.Depth,
			VerifyRate: cc.VerifyRate, Listed: cc.Validations.listed})
	}
	return out, nil
}

// resolve completes an entry from the known deployments; a custom chain must
// give id, identity and reputation.
func (cc chainConfig) resolve() (repute.Chain, error) {
	name := cc.Name
	if name == "" {
		name = fmt.Sprint(cc.ID)
	}
	chain, known := preset(name)
	if !known {
		if cc.ID == 0 || cc.Identity == "" || cc.Reputation == "" {
			return chain, repute.Invalid("chain", "unknown chain "+name,
				"repute chains lists the known ones; a custom one needs id, identity, reputation and start_block in the YAML file")
		}
		chain = repute.Chain{ID: cc.ID, Name: name}
	}
	if cc.ID != 0 && cc.ID != chain.ID {
		return chain, repute.Invalid("id", fmt.Sprintf("%s is chain %d, not %d", name, chain.ID, cc.ID), "leave id out for a known chain")
	}
	return chain, cc.overrideAddresses(&chain)
}

func (cc chainConfig) overrideAddresses(chain *repute.Chain) (err error) {
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
	return nil
}

// preset looks a known deployment up by name or decimal id.
func preset(name string) (repute.Chain, bool) {
	d, err := contracts.FindDeployment(name)
	if err != nil {
		return repute.Chain{}, false
	}
	return d.Chain(), true
}
