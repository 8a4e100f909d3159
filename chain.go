package repute

import (
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Chain has the registries that are followed on one EVM chain.
type Chain struct {
	ID          uint64
	Name        string
	Identity    common.Address
	Reputation  common.Address
	Validations []common.Address  // allow-list: only these count as trusted
	Gateways    []WatchedContract // allow-list of feedback gateways, by address
	Treasuries  []WatchedContract // treasuries whose events are indexed; the store has the list
	StartBlock  uint64            // at or before the identity registry's deployment
	Imported    bool              // fed by import, never followed
}

// WatchedContract is a contract whose events are indexed besides those of the registries: a feedback gateway, whose
// ratings belong to the payers that its TicketConsumed events name, or an OpenFiTreasury.
type WatchedContract struct {
	Address common.Address
	From    uint64 // first block whose events are read; of a gateway at or before that of its deployment
}

// WithoutRegistries reports whether the chain has no registries: it is indexed for its treasuries alone.
func (c Chain) WithoutRegistries() bool { return c.Identity == common.Address{} }

// Block identifies a block by number and hash. Time has seconds' precision and
// is zero when unknown.
type Block struct {
	Number uint64
	Hash   common.Hash
	Parent common.Hash
	Time   time.Time
}

// Finality names a view of the chain.
type Finality string

// Views, from newest to safest.
const (
	Latest    Finality = "latest"
	Safe      Finality = "safe"
	Finalized Finality = "finalized"
)

// At selects the state that a request reads: by Finality, or by block number if Finality is empty.
type At struct {
	Finality Finality
	Block    uint64
}

// CompletenessStatus describes how much of a chain's history the index has and has proven.
type CompletenessStatus string

// Completeness of a chain, and of one event kind on it. If several apply the first of Incomplete,
// Partial, Unproven and Verifying is used.
const (
	Complete   CompletenessStatus = "complete"   // indexed from the deployment on, every final block proven, no known gap
	Verifying  CompletenessStatus = "verifying"  // final blocks remain to be compared with the chain
	Unproven   CompletenessStatus = "unproven"   // final blocks were compared, and nothing proves their contents
	Partial    CompletenessStatus = "partial"    // only the listed ranges are covered
	Incomplete CompletenessStatus = "incomplete" // a gap is known and not yet repaired
)

// BlockRange is inclusive on both ends.
type BlockRange struct{ From, To uint64 }

// Completeness is published with every answer.
type Completeness struct {
	// Status is Complete when nothing is known to be missing and every block from the start to the
	// newest final one, except those of the last ten minutes (32 to 4,096), is proven: by receipts
	// with the root of its header, by a bloom that is part of the block's hash, or by two endpoints
	// of different hosts that return the same logs.
	Status CompletenessStatus
	// Reason is what is missing for Complete; "" for Complete.
	Reason string
	// VerifiedTo is the newest block up to which every block from the start is proven, 0 if the
	// first one is not. Newer blocks are proven first.
	VerifiedTo uint64
	Ranges     []BlockRange // covered blocks, ascending
	// Pending counts stored events that wait for a missing one.
	Pending int64
	// Undecoded counts logs of the registries that cannot be read: see Undecoded.
	Undecoded int64
	// Kinds is the completeness of each kind of event, in order of their numbers. Status is
	// Incomplete while any of them is.
	Kinds []KindCompleteness
}

// AsOf describes how current an answer about one chain is.
type AsOf struct {
	ChainID      uint64
	Block        Block // the block the answer is true at
	Finality     Finality
	Safe         uint64    // newest safe block, 0 when unknown
	Finalized    uint64    // newest finalized block, 0 when unknown
	Head         uint64    // the node's head at the last request
	HeadSeenAt   time.Time // when that was; zero for imports
	LagSeconds   *int64    // now minus Block.Time, nil when no time is known
	LagBlocks    *int64    // head minus Block, nil when the head is stale
	Completeness Completeness
}

// ChainStatus is the state of one chain for operators.
type ChainStatus struct {
	Chain
	AsOf
	Agents     int64
	Feedback   int64
	Reorgs     int64      // rewinds since the chain was added
	LastError  string     // of the indexing loop, "" when it runs well; see Failing
	Halted     bool       // stopped by a reorganization below finality
	Stalled    bool       // the head moves and nothing is stored
	Upgrades   int64      // times that a followed proxy got another implementation
	UpgradedAt uint64     // block of the last such upgrade, 0 when none
	Endpoints  []Endpoint // as each process that asks them sees them
	URIs       int64      // distinct document URIs known
	URIsDue    int64      // waiting to be fetched
	Scoring    Scoring
}

// Warning is the prefix of a LastError about events that the endpoints do not allow to index, which
// is no failure of the loop.
const Warning = "warning: "

// Failing reports whether the indexing loop has a failure.
func (s ChainStatus) Failing() bool {
	return s.LastError != "" && !strings.HasPrefix(s.LastError, Warning)
}
