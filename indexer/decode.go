package indexer

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
	"repute/indexer/node"
)

// decoder turns the logs of one chain's contracts into events.
type decoder struct {
	addresses []common.Address
	// emits says which topics mean something at which address: a Transfer of the
	// reputation registry is none of ours.
	emits  map[common.Address][]common.Hash
	legacy []common.Hash
}

func newDecoder(c repute.Chain) decoder {
	d := decoder{emits: map[common.Address][]common.Hash{}, legacy: contracts.LegacyTopics()}
	d.add(c.Identity, contracts.IdentityTopics())
	d.add(c.Reputation, contracts.ReputationTopics())
	for _, v := range c.Validations {
		d.add(v, contracts.ValidationTopics())
	}
	return d
}

func (d *decoder) add(a common.Address, topics []common.Hash) {
	if a == (common.Address{}) {
		return
	}
	if _, ok := d.emits[a]; !ok {
		d.addresses = append(d.addresses, a)
	}
	d.emits[a] = append(d.emits[a], topics...)
}

// decode gives a log's event, false when the log is none of ours. A log that a
// followed contract emitted and nobody can read is repute.Undecoded.
func (d *decoder) decode(l types.Log) (repute.Event, bool) {
	topics, ours := d.emits[l.Address]
	if !ours || len(l.Topics) == 0 {
		return nil, false
	}
	if !slices.Contains(topics, l.Topics[0]) && !slices.Contains(d.legacy, l.Topics[0]) {
		return nil, false
	}
	e, err := contracts.Read(l)
	return e, err == nil
}

// with gives the addresses to ask for when there are others beside the followed
// ones, which come first.
func (d *decoder) with(others []common.Address) []common.Address {
	list := slices.Clone(d.addresses)
	for _, a := range others {
		if !slices.Contains(list, a) {
			list = append(list, a)
		}
	}
	return list
}

// foreign gives the validation event of a contract that nobody listed, false when
// it was not asked for or says nothing: anybody may emit anything.
func (d *decoder) foreign(l types.Log, q *node.Query) (repute.Event, bool) {
	switch {
	case len(l.Topics) == 0:
		return nil, false
	case slices.Contains(q.Anywhere, l.Topics[0]):
	case slices.Contains(q.Addresses[len(d.addresses):], l.Address) && slices.Contains(contracts.ValidationTopics()[:2], l.Topics[0]):
	default:
		return nil, false
	}
	e, err := contracts.Decode(l)
	return e, err == nil
}
