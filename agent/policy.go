package agent

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Question is what a policy decides about.
type Question struct {
	Service *Service
	Client  common.Address // who pays or signed; zero where nobody did
	Caller  string         // key of the caller's network address
	Paid    bool           // a payment came with the request, which step 3 verifies; never for what has no price
	Time    time.Time
}

// Decision is what a policy says of a request.
type Decision struct {
	Allow   bool
	Reasons []string // for people, also of an allowed request
	// Limited says that the request is refused for now, and Retry for how long. Unavailable says that it
	// cannot be judged now.
	Limited     bool
	Unavailable bool
	Retry       time.Duration
	// Validation says that a validator must confirm the result.
	Validation bool
	// Refund says that a payment is owed back where it was charged and the call fails.
	Refund bool
}

// Score is what is known of the agent's own score.
type Score struct {
	Value    float64   `json:"score"`  // -100 to 100
	Low      float64   `json:"low"`    // the score is shown to be at least this
	High     float64   `json:"high"`   // and at most this
	Status   string    `json:"status"` // rated, thin, unrated
	Feedback int64     `json:"feedbackCount"`
	At       time.Time `json:"at"` // when it was read
}

// Governor is the policy of an agent (section 6). Decide is step 2 of every request. Mode follows
// from the own score, nil while none was ever read.
type Governor interface {
	Decide(ctx context.Context, q Question) Decision
	Mode(own *Score, now time.Time) (Mode, string)
}

// Open is the policy of an agent without one: everything is allowed, always.
type Open struct{}

// Decide implements Governor.
func (Open) Decide(context.Context, Question) Decision { return Decision{Allow: true} }

// Mode implements Governor.
func (Open) Mode(*Score, time.Time) (Mode, string) { return Normal, "" }
