package synth

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
	"repute/internal/eventlog"
)

// encoder writes the logs of events and knows their topics and tags.
type encoder struct {
	eventlog.Registries
	topics [repute.KindEIP712DomainChanged + 1]common.Hash
	tags   []string
	tag    []common.Hash // keccak256 by tag
}

// newEncoder computes the topics and tags, which takes some milliseconds.
func newEncoder() *encoder {
	e := &encoder{tags: newTags(), Registries: eventlog.Registries{Identity: identityAddress,
		Reputation: reputationAddress, Validation: validationAddress}}
	for kind := range e.topics {
		e.topics[kind] = contracts.Topic(repute.EventKind(kind))
	}
	for _, t := range e.tags {
		e.tag = append(e.tag, crypto.Keccak256Hash([]byte(t)))
	}
	return e
}

// kindOf is the event with a first topic, 0 for a foreign one.
func (e *encoder) kindOf(topic common.Hash) repute.EventKind {
	return repute.EventKind(max(slices.Index(e.topics[:], topic), 0))
}

// log encodes an event.
func (e *encoder) log(event repute.Event) *types.Log {
	l := e.Log(event)
	return &l
}

// token is the id of an agent by its number, which is its place in tables.agents.
func token(n uint32) repute.TokenID { return eventlog.Token(uint64(n)) }
