package synth

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Shape is a kind of history.
type Shape string

// Shapes of a history.
const (
	// Base follows published figures of the registries on Base and Ethereum:
	// every kind of event, most agents rated once, one agent with most of the
	// feedback, busy and empty blocks.
	Base Shape = "base"
	// Busy is nothing but full blocks of feedback, ten each.
	Busy Shape = "busy"
)

// Spec describes a history. Equal specs give equal histories.
type Spec struct {
	Shape Shape
	Seed  uint64
	// Events is how many logs there are, those of the registries' deployment
	// included, a block per five of them. For Busy it counts the feedback only, a block per ten.
	Events int
}

// Limits of Spec.Events.
const (
	MinEvents = 2_000
	MaxEvents = 10_000_000
)

const (
	// fullEvents is the size at which a Base history has the published counts;
	// others are in proportion.
	fullEvents = 1_000_000
	// layout numbers the files' format and the generator: a directory of another
	// one is not reused.
	layout = 2
	// deployBlock is where the registries appear.
	deployBlock = 100
	// The head lies that far above the last event, and so do the safe and the
	// finalized block, so that the state at all three is the final one.
	headAbove, safeAbove, finalizedAbove = 96, 64, 32

	genesisTime  = 1_769_000_000
	blockSeconds = 2
)

// The registries have the addresses they have on public networks.
var (
	identityAddress   = common.HexToAddress("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432")
	reputationAddress = common.HexToAddress("0x8004BAa17C55a88189AE136b182e5fdA19dE9b63")
	validationAddress = common.HexToAddress("0x8004Cc8439f36fd5F9F049D9fF86523Df6dAAB58")
)

// chainID belongs to no public network.
const chainID = 8_004_453

// Chain is what to configure for following a history of any spec.
func Chain() repute.Chain {
	return repute.Chain{ID: chainID, Name: "synthetic", Identity: identityAddress, Reputation: reputationAddress,
		Validations: []common.Address{validationAddress}, StartBlock: deployBlock}
}

// check refuses what no history can be made of. The error is an ErrInvalid.
func (s Spec) check() error {
	if s.Shape != Base && s.Shape != Busy {
		return repute.Invalid("shape", fmt.Sprintf("unknown shape %q", s.Shape), "base or busy")
	}
	if s.Events < MinEvents || s.Events > MaxEvents {
		return repute.Invalid("events", fmt.Sprintf("%d is out of range", s.Events),
			fmt.Sprintf("%d to %d", MinEvents, MaxEvents))
	}
	return nil
}

// key names the spec's directory.
func (s Spec) key() (string, error) {
	raw, err := json.Marshal(struct {
		Spec
		Layout int
	}{s, layout})
	if err != nil {
		return "", fmt.Errorf("spec: %w", err)
	}
	sum := sha256.Sum256(raw)
	return fmt.Sprintf("%s-%d-%s", s.Shape, s.Events, hex.EncodeToString(sum[:6])), nil
}

// scaled is a count of the full size in proportion, and at least least.
func (s Spec) scaled(full, least int) int {
	return max(least, int(int64(full)*int64(s.Events)/fullEvents))
}
