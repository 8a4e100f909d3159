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
	// Emits has the first topics of the events that each contract emits. Logs of a contract with
	// another topic are not decoded, such as a Transfer of the reputation registry.
	Emits      map[common.Address][]common.Hash
	legacy     []common.Hash           // first topics of superseded ABIs
	treasuries map[common.Address]bool // contracts of which every log is a TreasuryEvent
}

// NewDecoder returns a Decoder of the contracts that chain c names.
func NewDecoder(c repute.Chain) Decoder {
	d := Decoder{Emits: map[common.Address][]common.Hash{}, legacy: LegacyTopics(),
		treasuries: map[common.Address]bool{}}
	d.add(c.Identity, identityTopics())
	d.add(c.Reputation, reputationTopics())
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

// FollowedTopics returns the first topics, each once, of what the contracts of a chain emit, with those of
// superseded ABIs. They are the filter of log queries and of blooms.
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

// add adds a contract with the first topics of its events. The zero address is no contract. A contract that is listed
// as two kinds emits the events of both.
func (d *Decoder) add(a common.Address, topics []common.Hash) {
	if a == (common.Address{}) {
		return
	}
	if _, ok := d.Emits[a]; !ok {
		d.Addresses = append(d.Addresses, a)
	}
	d.Emits[a] = append(d.Emits[a], topics...)
}

// Decode returns the event of a log, and false for a log of another contract or with another topic than
// the contract's. A log of a followed contract that cannot be decoded is a repute.Undecoded, or of a
// treasury a repute.TreasuryEvent with the name repute.TreasuryUnreadable.
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

// With returns the followed addresses and, after them, others that are not among them.
func (d *Decoder) With(others []common.Address) []common.Address {
	list := slices.Clone(d.Addresses)
	for _, a := range others {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// Foreign returns the validation event of a contract that is not on the allow-list, and false for a log that was
// not asked for or does not decode, because any contract may emit anything. The query asked for the first topics in
// anyAddress at any address, and for the addresses in asked, of which the followed ones come first.
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
