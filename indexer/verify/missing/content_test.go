package missing

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"
)

// TestBloom finds the bloom of some logs within that of more, and misses no bit that only the others set.
func TestBloom(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		logs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) types.Log {
			word := rapid.Custom(func(t *rapid.T) common.Hash {
				return common.BytesToHash(rapid.SliceOfN(rapid.Byte(), 1, 32).Draw(t, "word"))
			})
			return types.Log{Address: common.BytesToAddress(word.Draw(t, "address").Bytes()),
				Topics: rapid.SliceOfN(word, 0, 4).Draw(t, "topics")}
		}), 1, 20).Draw(t, "logs")
		some := rapid.IntRange(0, len(logs)).Draw(t, "some")
		part, whole := Bloom(logs[:some]), Bloom(logs)
		if !Within(part, whole) || Within(whole, part) != (part == whole) {
			t.Fatalf("%d of %d logs", some, len(logs))
		}
		if !SameContent(&logs[0], &logs[0]) {
			t.Fatal("a log differs from itself")
		}
		other := logs[0]
		other.Data = []byte{1}
		if SameContent(&logs[0], &other) {
			t.Fatal("logs with different data are the same")
		}
	})
}
