package repute

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// KindCompleteness is how much of one kind of event the index can vouch for.
type KindCompleteness struct {
	Kind EventKind
	// Status is Incomplete while a gap is open or an event waits for one of this kind, else
	// what the chain's blocks allow.
	Status CompletenessStatus
	Reason string // says what Complete lacks; "" for Complete
	// VerifiedTo is the newest block at which what events of this kind lead to was
	// compared, for every agent, with the chain's own state and found equal; 0 when
	// it never was. For events that the state counts (registrations, feedback,
	// revocations, responses, validation requests) that means every one of them up
	// to there; for those that replace one another it means every one that still
	// held at some comparison.
	VerifiedTo uint64
	// Pending counts stored events that wait for one of this kind.
	Pending int64
	Open    int64 // gaps that are known and not yet repaired
	Gaps    []Gap // the oldest of them, at most MaxGaps of one chain
}

// MaxGaps bounds the gaps of one chain that answers list.
const MaxGaps = 50

// Gap is an event that the chain has and the index lacks.
type Gap struct {
	Kind   EventKind       // what is missing
	Agent  *TokenID        // whose, nil when of no single agent
	Client *common.Address // of whose feedback, nil when that says nothing
	Blocks BlockRange      // where it must be
	Reason string          // what shows that it is missing
	Since  time.Time       // when that was noticed
	Tries  int             // how often it was looked for in vain
	Next   time.Time       // when it is looked for again
}
