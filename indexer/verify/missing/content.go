package missing

import (
	"bytes"
	"slices"

	"github.com/ethereum/go-ethereum/core/types"
)

// Bloom returns the bloom of logs alone.
func Bloom(logs []types.Log) (b types.Bloom) {
	for i := range logs {
		b.Add(logs[i].Address[:])
		for _, t := range logs[i].Topics {
			b.Add(t[:])
		}
	}
	return b
}

// Within reports whether every bit of part is set in whole: a block whose bloom lacks one cannot hold the logs of part.
func Within(part, whole types.Bloom) bool {
	for i := range part {
		if part[i]&^whole[i] != 0 {
			return false
		}
	}
	return true
}

// SameContent compares what a stored log keeps.
func SameContent(a, b *types.Log) bool {
	return a.Address == b.Address && a.TxHash == b.TxHash && slices.Equal(a.Topics, b.Topics) &&
		bytes.Equal(a.Data, b.Data)
}
