package verify

import (
	"bytes"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
)

// bloomOf is the bloom of logs alone.
func bloomOf(logs []types.Log) (b types.Bloom) {
	for i := range logs {
		b.Add(logs[i].Address[:])
		for _, t := range logs[i].Topics {
			b.Add(t[:])
		}
	}
	return b
}

// within reports whether every bit of part is set in whole.
func within(part, whole types.Bloom) bool {
	for i := range part {
		if part[i]&^whole[i] != 0 {
			return false
		}
	}
	return true
}

// sameContent compares what a stored log keeps.
func sameContent(a, b *types.Log) bool {
	return a.Address == b.Address && a.TxHash == b.TxHash && slices.Equal(a.Topics, b.Topics) &&
		bytes.Equal(a.Data, b.Data)
}
