package repute

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Point is where on the chain something happened. Time is zero when the block's
// time is unknown.
type Point struct {
	Block    uint64
	LogIndex uint64
	TxHash   common.Hash
	Time     time.Time
}

// Agent is an agent's state at one block.
type Agent struct {
	ID AgentID
	// Owner is from Transfer. Where a partial import has none it is who
	// registered, and OwnerClaimed is set.
	Owner         common.Address
	OwnerClaimed  bool
	Wallet        common.Address // zero when cleared
	Approved      common.Address // zero when none
	URI           string         // raw bytes of the chain; see URISize
	URISize       int64          // bytes on chain; lists hold no more than the first 2048 of them
	Metadata      []Metadata     // the first 200 by key; without agentWallet; not read in lists
	MetadataCount int64          // all of them; not read in lists
	Registered    Point
	Updated       Point // last event that touched the agent, its feedback or validations
	Counts        AgentCounts
	Document      Document // of the current URI
	// Score is the zero one, unrated, when none was computed. In lists, and of one agent
	// at latest, it says how much, not what it follows from.
	Score Score
}

// AgentCounts are maintained totals of one agent.
type AgentCounts struct {
	Feedback    int64 // live: not revoked
	Revoked     int64
	Clients     int64 // distinct clients with live feedback
	Responses   int64
	Validations int64 // answered requests of trusted contracts
}

// Metadata is one on-chain key with its current value, both raw bytes.
type Metadata struct {
	Key   string // no more than the first 2048 bytes
	Value []byte // no more than the first 2048 bytes
	Size  int64  // bytes of the whole value
	// Partial: key or value were cut.
	Partial bool
	Cut     []string // those of them that were: key and value
	Set     Point
}

// Validation is one request with its latest answer.
type Validation struct {
	ChainID         uint64
	Contract        common.Address
	ContractTrusted bool // the contract is on the chain's allow-list
	RequestHash     common.Hash
	Agent           AgentID
	Validator       common.Address
	RequestURI      string
	// RequestFile is behind RequestURI and judged by RequestHash, which many contracts
	// make of something else than the file's bytes.
	RequestFile *File
	Requested   Point
	// Answered is nil while pending: the chain itself cannot tell pending from 0.
	Answered *ValidationAnswer
	Answers  int64 // how many answers were given; the latest counts
	// Partial: a text of it or of its answer is longer than 2048 bytes and was cut.
	Partial bool
	Cut     []string // uri, where it was cut
}

// ValidationAnswer is a validator's answer.
type ValidationAnswer struct {
	Response uint8 // 0..100
	URI      string
	Hash     common.Hash
	File     *File // behind URI; nil without URI and Hash
	Tag      string
	At       Point
	Cut      []string // those of its texts that were cut: uri and tag
}
