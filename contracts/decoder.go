package contracts

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// Decoder turns the logs of one chain's contracts into events.
type Decoder struct {
	// Addresses are the followed contracts, each once.
	Addresses []common.Address
	// Emits says which topics mean something at which address: a Transfer of the
	// reputation registry is none of ours.
	Emits      map[common.Address][]common.Hash
	legacy     []common.Hash
	treasuries map[common.Address]bool
}

// NewDecoder is for the contracts that chain c names.
func NewDecoder(c repute.Chain) Decoder {
	d := Decoder{Emits: map[common.Address][]common.Hash{}, legacy: LegacyTopics(), treasuries: map[common.Address]bool{}}
	d.add(c.Identity, IdentityTopics())
	d.add(c.Reputation, ReputationTopics())
	for _, v := range c.Validations {
		d.add(v, ValidationTopics())
	}
	for _, g := range c.Gateways {
		d.add(g.Address, GatewayTopics())
	}
	for _, t := range c.Treasuries {
		if _, other := d.Emits[t.Address]; !other {
			d.add(t.Address, TreasuryTopics())
			d.treasuries[t.Address] = true
		}
	}
	return d
}

// FollowedTopics lists the first topics of what the contracts of a chain emit, those of superseded ABIs included.
func FollowedTopics(c repute.Chain) []common.Hash {
	if c.WithoutRegistries() {
		return TreasuryTopics()
	}
	topics := append(Topics(), LegacyTopics()...)
	if len(c.Gateways) > 0 {
		topics = append(topics, GatewayTopics()...)
	}
	if len(c.Treasuries) > 0 {
		topics = append(topics, slices.DeleteFunc(TreasuryTopics(),
			func(t common.Hash) bool { return slices.Contains(topics, t) })...)
	}
	return topics
}

func (d *Decoder) add(a common.Address, topics []common.Hash) {
	if a == (common.Address{}) {
		return
	}
	if _, ok := d.Emits[a]; !ok {
		d.Addresses = append(d.Addresses, a)
	}
	d.Emits[a] = append(d.Emits[a], topics...)
}

// Decode returns a log's event, false when the log is none of ours. A log that a
// followed contract emitted and nobody can read is repute.Undecoded.
func (d *Decoder) Decode(l types.Log) (repute.Event, bool) {
	topics, ours := d.Emits[l.Address]
	if !ours || len(l.Topics) == 0 {
		return nil, false
	}
	if d.treasuries[l.Address] {
		return decodeTreasury(&l), slices.Contains(topics, l.Topics[0])
	}
	if !slices.Contains(topics, l.Topics[0]) && !slices.Contains(d.legacy, l.Topics[0]) {
		return nil, false
	}
	e, err := Read(l)
	return e, err == nil
}

// With returns the addresses to ask for when there are others than the followed
// ones, which come first.
func (d *Decoder) With(others []common.Address) []common.Address {
	list := slices.Clone(d.Addresses)
	for _, a := range others {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// Foreign returns the validation event of a contract that nobody listed, false when
// it was not asked for or says nothing: anybody may emit anything. What was asked for
// are first topics of any address, and addresses, of which the followed ones come first.
func (d *Decoder) Foreign(l types.Log, anyAddress []common.Hash, asked []common.Address) (repute.Event, bool) {
	switch {
	case len(l.Topics) == 0:
		return nil, false
	case slices.Contains(anyAddress, l.Topics[0]):
	case slices.Contains(asked[len(d.Addresses):], l.Address) && slices.Contains(ValidationTopics()[:2], l.Topics[0]):
	default:
		return nil, false
	}
	e, err := Decode(l)
	return e, err == nil
}
