package synth

import (
	"encoding/binary"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/contracts"
)

// encoder writes the logs of events. It knows the hashes of all indexed strings.
type encoder struct {
	topics [repute.KindEIP712DomainChanged + 1]common.Hash
	tags   tagTable
	tag    []common.Hash // keccak256 by tag
	key    []common.Hash // keccak256 by metadata key
	wallet common.Hash
}

func newEncoder() *encoder {
	e := &encoder{tags: newTags(), wallet: keccak("agentWallet")}
	for kind := range e.topics {
		e.topics[kind] = contracts.Topic(repute.EventKind(kind))
	}
	for _, t := range e.tags {
		e.tag = append(e.tag, keccak(t))
	}
	for _, k := range metadataKeys {
		e.key = append(e.key, keccak(k))
	}
	return e
}

// kindOf is the event with a first topic, 0 for a foreign one.
func (e *encoder) kindOf(topic common.Hash) repute.EventKind {
	return repute.EventKind(max(slices.Index(e.topics[:], topic), 0))
}

func keccak(s string) common.Hash { return crypto.Keccak256Hash([]byte(s)) }

// log makes a log; topics are the indexed arguments in the order of the
// declaration, args the others.
func (e *encoder) log(from common.Address, kind repute.EventKind, topics []common.Hash, args ...any) *types.Log {
	all := make([]common.Hash, 0, 4)
	return &types.Log{Address: from, Topics: append(append(all, e.topics[kind]), topics...), Data: pack(args)}
}

// pack is Solidity's ABI encoding of arguments, of the few types that the
// registries' events have.
func pack(args []any) []byte {
	size := 32 * len(args)
	for _, a := range args {
		size += tailSize(a)
	}
	data := make([]byte, size)
	end := 32 * len(args)
	for i, a := range args {
		word := data[32*i : 32*i+32]
		switch a := a.(type) {
		case uint64:
			binary.BigEndian.PutUint64(word[24:], a)
		case bool:
			if a {
				word[31] = 1
			}
		case common.Address:
			copy(word[12:], a[:])
		case common.Hash:
			copy(word, a[:])
		case amount:
			a.word(word)
		case string:
			binary.BigEndian.PutUint64(word[24:], uint64(end))
			binary.BigEndian.PutUint64(data[end+24:], uint64(len(a)))
			copy(data[end+32:], a)
			end += tailSize(a)
		}
	}
	return data
}

// tailSize is what a dynamic argument takes behind the head.
func tailSize(a any) int {
	s, ok := a.(string)
	if !ok {
		return 0
	}
	return 32 + (len(s)+31)/32*32
}

// word writes the amount as a sign-extended word.
func (a amount) word(w []byte) {
	v := a.big()
	if v.Sign() >= 0 {
		v.FillBytes(w)
		return
	}
	v.Not(v).FillBytes(w) // -v-1, the complement of v
	for i := range w {
		w[i] = ^w[i]
	}
}

func tokenTopic(token uint32) (h common.Hash) {
	binary.BigEndian.PutUint32(h[28:], token)
	return h
}

func partyTopic(p party) common.Hash {
	a := p.address()
	return common.BytesToHash(a[:])
}

func numberTopic(n uint32) common.Hash { return tokenTopic(n) }
