package node

import (
	"encoding/binary"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Named reports whether a bloom has the address and all topics of a log.
func Named(bloom *types.Bloom, l *types.Log) bool { return bloomBits{}.name(bloom, l) }

// bloomBits remembers the three bits that a value sets in a bloom (yellow paper, 4.3.1). The
// logs of a range repeat addresses and topics, and a hash costs more than all else that is
// checked of a log.
type bloomBits map[string][3]uint16

// name reports whether a bloom has the address and all topics of a log.
func (b bloomBits) name(bloom *types.Bloom, l *types.Log) bool {
	if !b.has(bloom, l.Address[:]) {
		return false
	}
	for i := range l.Topics {
		if !b.has(bloom, l.Topics[i][:]) {
			return false
		}
	}
	return true
}

// has reports whether bloom admits value, whose bits b holds once they were computed.
func (b bloomBits) has(bloom *types.Bloom, value []byte) bool {
	bits, known := b[string(value)]
	if !known {
		hash := crypto.Keccak256(value)
		for i := range bits {
			bits[i] = binary.BigEndian.Uint16(hash[2*i:]) % types.BloomBitLength
		}
		b[string(value)] = bits
	}
	for _, bit := range bits {
		if bloom[types.BloomByteLength-1-bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}
