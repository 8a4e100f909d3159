package node

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
)

// Heads is a node's report of its newest blocks.
type Heads struct {
	ChainID   uint64
	Latest    repute.Block
	Sealed    bool   // the header of Latest is the hash of its fields
	Safe      uint64 // 0 when the node does not report it
	Finalized uint64 // 0 when the node does not report it
	// HeadFinal reports that the node calls its newest block final, as development
	// nodes do. That block may be replaced: Safe and Finalized are then 0.
	HeadFinal bool
	SeenAt    time.Time
}

// Query requests the logs of a range of blocks, inclusive on both ends.
type Query struct {
	From, To  uint64
	Addresses []common.Address
	Topics    []common.Hash // any of them first, of Addresses
	// AnyAddress are first topics that are requested from all addresses: validation events of
	// contracts that are not listed. Empty: none.
	AnyAddress []common.Hash
	// Linked requests the header of every block, not only of From and To, and the logs of each
	// block by its hash where the source can do that. It is set near the head, where a range may be
	// answered from another fork than the headers.
	Linked bool
	// Sealed reports that the headers of the chain are known to be hashes of their fields. A header
	// that is not is refused, unless it has fields that are unknown here. The header of every block
	// with logs is read and is part of the Span.
	Sealed bool
	// Blooms refuses logs that the bloom of their block excludes, if the header with that bloom is
	// the hash of its fields. Unnamed are hashes of blocks whose bloom is known to lack some of
	// their logs.
	Blooms  bool
	Unnamed map[common.Hash]bool
}

// Span is the answer to a Query. Headers ascend and include at least From and To. A log that both
// Addresses and AnyAddress request may be included twice.
type Span struct {
	Logs    []types.Log
	Headers []repute.Block
	// Sealed are the received headers by block number.
	Sealed map[uint64]Sealed
	Bytes  int    // size of the answer on the wire or an estimate of it, to bound memory
	From   string // host of the endpoint that answered, never its URL
}
