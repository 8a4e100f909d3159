package trustdb

import (
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Subject is the input for the score of one agent, as of a block.
type Subject struct {
	Agent repute.AgentID
	// Block is the block of the view.
	Block                   repute.Block
	Owner, Wallet, Approved common.Address
	// Operators may act for every agent of the owner.
	Operators []common.Address
	// Holders are all who had the agent, the oldest first.
	Holders []Holder
	// Events tell who registered the agent, which may not be the first of Holders, and who acted for it, in the order
	// of the chain. Of several changes by one owner the first is given.
	Events []OwnerEvent
	// Updated is the newest block with an event of the agent or of an address that acts for it; set
	// by ReadSubjects at the latest block only.
	Updated repute.Block
	// Judged says that the agent has or had ratings or answers by then.
	Judged bool
	// Revoked is how many ratings were revoked until now.
	Revoked int64
	// Large says that the agent has more than ManyRatings, and neither payments nor answers that
	// count.
	Large bool
	Rows  []Row
	// Gone are ratings that were revoked since a block up to which the caller has them; only ReadGrowth sets it.
	Gone []Row
}

// Holder is an owner of an agent from the end of a block on.
type Holder struct {
	From          uint64
	Time          time.Time      // of that block, zero when unknown
	Owner, Wallet common.Address // Wallet is zero when cleared
}

// Row is one live rating, or the latest answer to one validation request of an
// allow-listed contract.
type Row struct {
	Rater common.Address
	// Via is the feedback gateway that wrote the rating for Rater, zero for none. Where the rater is not known, Rater
	// is the gateway too.
	Via common.Address
	// Index is the number of the rating, 0 for an answer.
	Index uint64
	// Validation says that this is the answer of a validation contract.
	Validation bool
	Amount     repute.Amount
	// Tag1 and Tag2 have at most 64 bytes. A longer one was not read and is empty; Other says that of Tag1.
	Tag1, Tag2 string
	Other      bool
	// Content is the sha256 of the URI.
	Content  common.Hash
	Block    uint64
	LogIndex uint32
	// Time is zero when the block's time is unknown.
	Time time.Time
	// Payment is the verified payment that the rating is about; nil for none.
	Payment *repute.Payment
}

// writtenBy sets whose a rating is, by its client and its payer.
func (r *Row) writtenBy(client, payer []byte) {
	r.Rater, r.Via = common.BytesToAddress(client), common.Address{}
	if payer == nil {
		return
	}
	r.Via = r.Rater
	if len(payer) > 0 {
		r.Rater = common.BytesToAddress(payer)
	}
}

// Client returns the address that wrote the rating.
func (r *Row) Client() common.Address {
	if r.Via != (common.Address{}) {
		return r.Via
	}
	return r.Rater
}

// maxTrustTag is longer than any tag that a table of tags names.
const maxTrustTag = 64
