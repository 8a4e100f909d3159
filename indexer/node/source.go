package node

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// Heads is what a node says about its newest blocks.
type Heads struct {
	ChainID   uint64
	Latest    repute.Block
	Sealed    bool   // the header of Latest is the hash of its fields
	Safe      uint64 // 0 when the node does not say
	Finalized uint64 // 0 when the node does not say
	// HeadFinal reports that the node calls its newest block final, as development
	// nodes do. That block may be replaced: Safe and Finalized are then 0.
	HeadFinal bool
	SeenAt    time.Time
}

// Query asks for the logs of a range of blocks, inclusive on both ends.
type Query struct {
	From, To  uint64
	Addresses []common.Address
	Topics    []common.Hash // any of them first, of Addresses
	// Anywhere are first topics wanted whatever the address: validation events of
	// contracts that nobody listed. Empty: none.
	Anywhere []common.Hash
	// Linked asks for the header of every block, not only of From and To, and for
	// the logs of each block by its hash where the source can: near the head, where
	// a range may be answered from another fork than the headers.
	Linked bool
	// Sealed says that the chain's headers are known to be hashes of their fields. One
	// that is not is refused, unless it has fields that are unknown here, and the
	// header of every block with logs is read and comes with the Span.
	Sealed bool
	// Blooms refuses logs that the bloom of their block does not name, where the
	// header with that bloom is the hash of its fields. Unnamed are the hashes of
	// blocks whose bloom is known to lack logs that they hold.
	Blooms  bool
	Unnamed map[common.Hash]bool
}

// Span is the answer to a Query. Headers ascend and hold at least From and To. A
// log that Addresses and Anywhere both ask for may come twice.
type Span struct {
	Logs    []types.Log
	Headers []repute.Block
	// Sealed are the headers that were read as they came, by block number.
	Sealed map[uint64]Sealed
	Bytes  int    // size of the answer on the wire or an estimate of it, to bound memory
	From   string // host of the endpoint that answered, never its URL
}
