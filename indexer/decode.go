package indexer

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts"
)

// decoder turns the logs of one chain's contracts into events.
type decoder struct {
	addresses []common.Address
	// emits says which topics mean something at which address: a Transfer of the
	// reputation registry is none of ours.
	emits map[common.Address][]common.Hash
}

func newDecoder(c repute.Chain) decoder {
	d := decoder{emits: map[common.Address][]common.Hash{}}
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

// errForeignLog: the log is none of the chain's registry events.
var errForeignLog = errors.New("not an event of this chain's registries")

// decode gives a log's event: errForeignLog when there is none for us, any other
// error when a registry's log cannot be understood.
func (d *decoder) decode(l types.Log) (repute.Event, error) {
	topics, ours := d.emits[l.Address]
	if !ours || len(l.Topics) == 0 {
		return nil, errForeignLog
	}
	e, err := contracts.Decode(l)
	switch {
	case errors.Is(err, contracts.ErrForeign), err == nil && !slices.Contains(topics, l.Topics[0]):
		return nil, errForeignLog
	case err != nil:
		return nil, err
	}
	return e, storable(e)
}

// storable refuses values that the ABI admits and the registries never emit.
// Validation contracts of others may.
func storable(e repute.Event) error {
	switch e := e.(type) {
	case repute.NewFeedback:
		if e.Decimals > 18 || e.Index == 0 || e.Index > math.MaxInt64 {
			return fmt.Errorf("%w: feedback %d with %d decimals", contracts.ErrMalformed, e.Index, e.Decimals)
		}
	case repute.FeedbackRevoked:
		return storableIndex(e.Index)
	case repute.ResponseAppended:
		return storableIndex(e.Index)
	case repute.ValidationResponse:
		if e.Response > 100 {
			return fmt.Errorf("%w: response %d", contracts.ErrMalformed, e.Response)
		}
	}
	return nil
}

func storableIndex(i uint64) error {
	if i == 0 || i > math.MaxInt64 {
		return fmt.Errorf("%w: feedback index %d", contracts.ErrMalformed, i)
	}
	return nil
}
