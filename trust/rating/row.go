package rating

import (
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
)

// Row is one rating, or one validation answer.
type Row struct {
	Tx       common.Hash
	Block    uint64
	LogIndex uint32
	Time     int64 // of the block, Unix seconds
	Rater    common.Address
	// Via is the feedback gateway that wrote the rating for Rater, zero for none. It equals Rater when no ticket names
	// the payer.
	Via        common.Address
	Index      uint64 // of the rating, 0 for a validation answer
	Validation bool
	Amount     repute.Amount // 0 to 100 for a validation answer
	Tag1, Tag2 string        // Tag1 is the answer's tag for a validation
	// Content is equal for ratings with the same feedback URI: a hash that identifies the URI, or zero.
	Content common.Hash
	// Paid is what the rater provably paid the agent for the rated work, in US dollars. Each
	// payment counts for one row.
	Paid fixed.Fixed
	// Payee is the address that received it, and PaidAt the time in Unix seconds. They are zero without a payment, and
	// matter for penalties alone.
	Payee  common.Address
	PaidAt int64
	// Said and Writer save time where many rows are read, and change no result. Said is the result of Params.Said for
	// the row, nil when it is unknown. Writer is a number above 0 of Rater among the raters of all agents, 0 for none.
	Said   *Said
	Writer uint32
}

// Client returns the address that wrote the rating, which numbers it.
func (r *Row) Client() common.Address {
	if r.Via != (common.Address{}) {
		return r.Via
	}
	return r.Rater
}

// Reasons returns all reasons, in no particular order.
func Reasons() []Reason {
	return []Reason{ReasonSelf, ReasonUnknownTag, ReasonRange, ReasonScale, ReasonChannel, ReasonEarlier, ReasonFuture,
		ReasonUndated, ReasonGateway}
}

// Reason is why a row does not count.
type Reason string

// Reasons of excluded rows.
const (
	ReasonSelf       Reason = "self"          // by the agent's own identity, or praise by an address that the owner named
	ReasonUnknownTag Reason = "unknown-tag"   // the tag table has no rule
	ReasonRange      Reason = "out-of-range"  // the value is outside the tag's range
	ReasonScale      Reason = "scale"         // the scale on which the rater wrote the value is unknown
	ReasonChannel    Reason = "other-channel" // the tag's channel is not part of the score
	ReasonEarlier    Reason = "earlier-owner" // praise from before the owner got the agent
	ReasonFuture     Reason = "future"        // later than the view
	ReasonUndated    Reason = "undated"       // the time of its block is unknown
	ReasonGateway    Reason = "gateway"       // a feedback gateway wrote it, and no ticket names its payer
)

// UnreadTag stands for a tag that was too long to be read. It is no UTF-8, hence in no table.
const UnreadTag = "\xff"

// Dollars converts an amount of US dollars.
func Dollars(m repute.Micros) fixed.Fixed { return fixed.Ratio(int64(min(m, repute.MaxPaid)), 1e6) }
