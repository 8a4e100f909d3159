package transaction

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// Chain is what a run can reach of a chain.
type Chain interface {
	// Read calls a contract's view function at the newest block.
	Read(ctx context.Context, chainID uint64, to common.Address, data []byte) ([]byte, error)
	// Simulate says what sending would come to, at a block that it names. That the chain
	// would refuse the transaction is no error.
	Simulate(ctx context.Context, o Origin, tx Tx) (Simulation, error)
	// Send sends a transaction once per intent, however often it is called with it, and
	// waits until it is confirmed. An error of kind repute.ErrUnavailable leaves open
	// whether it was sent: the same intent may be tried again.
	Send(ctx context.Context, intent Intent) (Sent, error)
}

// Origin is on whose behalf a transaction is sent.
type Origin struct {
	Agent     string // slug, whose treasury policy counts
	Run, Task string
}

// Intent is a transaction that is to be sent once.
type Intent struct {
	ID string // unique
	Origin
	Tx
	MaxGasWei string // decimal, of fees; empty: no limit
	// Still is asked right before the transaction is signed for the first time, and its error
	// ends the intent. Nil: nothing is asked.
	Still func(context.Context) error `json:"-"`
}

// Simulation is what a transaction would come to.
type Simulation struct {
	OK          bool        `json:"ok"`
	Reason      string      `json:"reason,omitempty"` // why not
	Gas         uint64      `json:"gas"`
	FeeWei      string      `json:"feeWei"` // most that the gas costs, decimal
	Block       uint64      `json:"block"`
	BlockHash   common.Hash `json:"blockHash"`
	WithinCaps  bool        `json:"withinCaps"`
	CallOK      bool        `json:"callAllowed"` // the allow-list has the pair of target and selector, or the token
	ThroughCall bool        `json:"throughTreasury"`
	// Logs are what a call through the treasury would emit; none where the node cannot tell.
	Logs []types.Log `json:"-"`
	// Treasury is that one; what leaves it counts as value at risk.
	Treasury common.Address `json:"-"`
}

// Sent is a confirmed transaction.
type Sent struct {
	Hash    common.Hash    `json:"hash"`
	From    common.Address `json:"from"`
	OK      bool           `json:"ok"` // false: it was mined and reverted
	Block   uint64         `json:"block"`
	GasUsed uint64         `json:"gasUsed"`
	FeeWei  string         `json:"feeWei"`
	Result  []byte         `json:"result,omitempty"` // the logs it emitted, as JSON
}
