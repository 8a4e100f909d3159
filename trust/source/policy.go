package source

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"go.yaml.in/yaml/v4"

	"repute"
	"repute/trust/fixed"
)

//go:embed sources.yaml
var defaultFile []byte

// maxFile is the largest size of a file of sources, in bytes.
const maxFile = 1 << 20

// Policy is a validated file of sources. Parse makes it. It does not change and is safe for concurrent use. The members
// in JSON are the canonical form whose hash a run stores. Changing a tag or the order of members changes the hash of
// every policy.
type Policy struct {
	Version   string              `yaml:"version" json:"version"`
	Multicall common.Address      `yaml:"multicall" json:"multicall"` // Multicall3, at this address on every chain
	Classes   map[Class]ClassRule `yaml:"classes" json:"classes"`
	All       Bounds              `yaml:"all" json:"all"` // units of all sources together that may count at one agent
	Budget    Budget              `yaml:"budget" json:"budget"`
	Defaults  []ChainDefault      `yaml:"defaults" json:"defaults"`
	Others    []string            `yaml:"others" json:"others"` // ids for chains without an entry in Defaults
	Relays    []Relay             `yaml:"relays" json:"relays"`
	Sources   []Source            `yaml:"sources" json:"sources"`

	body   []byte                    // canonical JSON: see Encode
	relays map[common.Address]string // names of Relays by address
}

// Class is how hard a credential is to get. Its rule bounds all credentials of the class together, so that many cheap
// ones do not add up to one that is hard to get.
type Class string

// Classes of credentials.
const (
	ClassA Class = "A" // a person or a business was checked
	ClassB Class = "B" // money was spent, or can be taken away
	ClassC Class = "C" // cheap, but takes time
)

// ClassRule bounds the credentials of one class.
type ClassRule struct {
	Weight fixed.Fixed `yaml:"weight" json:"weight"` // highest weight of one credential
	InAll  bool        `yaml:"inAll" json:"inAll"`   // Weight also limits a rater's sum over all sources of the class
	Bounds `yaml:",inline"`
}

// Bounds are the most units of evidence that count at one agent: Praise for it, Blame against it.
type Bounds struct {
	Praise fixed.Fixed `yaml:"praise" json:"praise"`
	Blame  fixed.Fixed `yaml:"blame" json:"blame"`
}

// Budget limits how many agents the credentials of one rater lift. A rater that rated n agents, more than Agents, in
// the last Days days before the end of the epoch has Agents/n of its weight at each of them. Without it one holder
// could be rented to lift any number of agents.
type Budget struct {
	Agents int `yaml:"agents" json:"agents"`
	Days   int `yaml:"days" json:"days"`
}

// ChainDefault lists the ids of the sources that count on a chain.
type ChainDefault struct {
	Chain   uint64   `yaml:"chain" json:"chain"`
	Sources []string `yaml:"sources" json:"sources"`
}

// Relay is a service that sends transactions for others. Its addresses have no weight by any source.
type Relay struct {
	Name      string           `yaml:"name" json:"name"`
	Reference string           `yaml:"reference" json:"reference"`
	Addresses []common.Address `yaml:"addresses" json:"addresses"`
}

// Default parses the file of sources in this package. The file is embedded in the program, so that an error is a
// mistake of the build.
func Default() (*Policy, error) { return Parse(defaultFile) }

// DefaultFile returns the text of the file of sources in this package.
func DefaultFile() []byte { return slices.Clone(defaultFile) }

// Parse reads a file of sources. The error is repute.ErrInvalid and names the field. Unknown members and a second
// document are errors. The canonical JSON is made after the check, from the same values.
func Parse(text []byte) (*Policy, error) {
	if len(text) > maxFile {
		return nil, repute.Invalid("sources", "larger than 1 MiB", "fewer sources or relays")
	}
	p := &Policy{}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	err := dec.Decode(p)
	if err == nil {
		if more := dec.Decode(&yaml.Node{}); !errors.Is(more, io.EOF) {
			err = errors.New("a second document follows the first")
		}
	}
	if err != nil {
		return nil, decodeError(err, text)
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if p.body, err = json.Marshal(p); err != nil {
		return nil, fmt.Errorf("encode the sources: %w", err)
	}
	return p, nil
}

// Encode returns the policy's canonical JSON, which Parse reads. Comments and the order of members in the file do not
// change it.
func (p *Policy) Encode() []byte { return slices.Clone(p.body) }

// Hash is the sha256 of what Encode returns.
func (p *Policy) Hash() common.Hash { return sha256.Sum256(p.body) }

// Source returns the source of an id, nil when there is none.
func (p *Policy) Source(id string) *Source {
	at := slices.IndexFunc(p.Sources, func(s Source) bool { return s.ID == id })
	if at < 0 {
		return nil
	}
	return &p.Sources[at]
}

// On returns the sources that count on a chain, in the order of the file. An entry for the chain replaces others, even
// with an empty list: then no source counts there.
func (p *Policy) On(chain uint64) []*Source {
	ids := p.Others
	for _, d := range p.Defaults {
		if d.Chain == chain {
			ids = d.Sources
		}
	}
	out := make([]*Source, 0, len(ids))
	for i := range p.Sources {
		if slices.Contains(ids, p.Sources[i].ID) {
			out = append(out, &p.Sources[i])
		}
	}
	return out
}

// Relay reports whether an address belongs to a relay, and returns the relay's name. It is asked for every credential,
// hence the map.
func (p *Policy) Relay(a common.Address) (name string, relay bool) {
	name, relay = p.relays[a]
	return name, relay
}
