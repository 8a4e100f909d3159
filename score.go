package repute

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// Points is a score or a part of one, in thousandths of a point: -100000 to 100000.
type Points int64

// String writes the points with three digits, e.g. "-12.500".
func (p Points) String() string {
	sign, n := "", int64(p)
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%03d", sign, n/1000, n%1000)
}

// MarshalJSON writes a JSON number with three digits.
func (p Points) MarshalJSON() ([]byte, error) { return []byte(p.String()), nil }

// Score is how far an agent can be trusted, as it was stored.
type Score struct {
	Agent AgentID
	// Block is the newest that the score follows from; ages run to its time. Of a final
	// score it is the newest block with an event up to the end of the epoch.
	Block Block
	// Final: of a closed epoch, kept and replayable. Otherwise of the newest block, and
	// gone with it if the chain is reorganised.
	Final bool
	// Run numbers the walk over the chain's graph whose weights count, from 1, and Epoch
	// is its epoch. An epoch has several runs where roots or parameters changed in it.
	Run, Epoch uint64
	Scorer     string // version of the engine
	// Hashes (sha256) of everything else that the score follows from, besides events.
	Params, Tags, Roots, Links, Evidence common.Hash

	Rated                  bool
	Score, Low, High, Mean Points
	Confidence             int64 // millionths
	Tier                   int
	Result                 []byte // all of it, as canonical JSON
}
