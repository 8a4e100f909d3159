package repute

import (
	"encoding/json"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
)

// EventKind numbers the registry events. The numbers are stored: never reorder.
type EventKind int16

// The events of the three registries, ERC-8004 and OpenZeppelin's.
const (
	KindTransfer EventKind = iota + 1
	KindRegistered
	KindURIUpdated
	KindMetadataSet
	KindMetadataUpdate
	KindBatchMetadataUpdate
	KindApproval
	KindApprovalForAll
	KindNewFeedback
	KindFeedbackRevoked
	KindResponseAppended
	KindValidationRequest
	KindValidationResponse
	KindUpgraded
	KindInitialized
	KindOwnershipTransferred
	KindEIP712DomainChanged
	KindUndecoded // not an event of any ABI: see Undecoded
	KindTicketConsumed
	KindTreasuryEvent // any event of an OpenFiTreasury
)

// String returns the event's Solidity name.
func (k EventKind) String() string {
	names := [...]string{"", "Transfer", "Registered", "URIUpdated", "MetadataSet", "MetadataUpdate",
		"BatchMetadataUpdate", "Approval", "ApprovalForAll", "NewFeedback", "FeedbackRevoked",
		"ResponseAppended", "ValidationRequest", "ValidationResponse", "Upgraded", "Initialized",
		"OwnershipTransferred", "EIP712DomainChanged", "Undecoded", "TicketConsumed", "TreasuryEvent"}
	if k < 1 || int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// HasState reports whether the registries' views return the effect of events of the kind, so that
// the state of the chain proves them.
func (k EventKind) HasState() bool {
	return k >= KindTransfer && k <= KindValidationResponse && k != KindMetadataUpdate && k != KindBatchMetadataUpdate
}

// Event is one decoded registry event. Strings hold the bytes of the log as
// they are: possibly invalid UTF-8, possibly with NUL.
type Event interface{ Kind() EventKind }

// Record is a registry log with its meaning. Time is the block's; the zero time
// when unknown (imports).
type Record struct {
	Log   types.Log
	Time  time.Time
	Event Event
}

// Transfer moves an agent; From is zero for a mint.
type Transfer struct {
	From, To common.Address
	TokenID  TokenID
}

// Registered announces a registration. Owner is who registered, not
// necessarily who owns: only Transfer says that.
type Registered struct {
	TokenID TokenID
	URI     string
	Owner   common.Address
}

// URIUpdated replaces an agent's document URI.
type URIUpdated struct {
	TokenID   TokenID
	URI       string
	UpdatedBy common.Address
}

// MetadataSet stores Value under Key; key "agentWallet" carries the wallet as 20
// bytes, empty when cleared.
type MetadataSet struct {
	TokenID TokenID
	Key     string
	Value   []byte
}

// MetadataUpdate is ERC-4906's hint; it changes nothing here.
type MetadataUpdate struct{ TokenID TokenID }

// BatchMetadataUpdate is ERC-4906's hint for a range of tokens.
type BatchMetadataUpdate struct{ From, To TokenID }

// Approval sets the one approved address of an agent, zero for none.
type Approval struct {
	Owner, Approved common.Address
	TokenID         TokenID
}

// ApprovalForAll makes Operator act for every agent of Owner, or stops it.
type ApprovalForAll struct {
	Owner, Operator common.Address
	Approved        bool
}

// NewFeedback is one rating: Value / 10^Decimals. Index counts from 1 per
// (agent, client).
type NewFeedback struct {
	TokenID      TokenID
	Client       common.Address
	Index        uint64
	Value        *big.Int // int128
	Decimals     uint8
	Tag1, Tag2   string
	Endpoint     string
	URI          string
	FeedbackHash common.Hash
}

// FeedbackRevoked withdraws a rating permanently.
type FeedbackRevoked struct {
	TokenID TokenID
	Client  common.Address
	Index   uint64
}

// ResponseAppended answers a rating; anyone may, any number of times.
type ResponseAppended struct {
	TokenID      TokenID
	Client       common.Address
	Index        uint64
	Responder    common.Address
	URI          string
	ResponseHash common.Hash
}

// ValidationRequest asks Validator to check an agent's work. The contract is
// the log's address; RequestHash is unique in it.
type ValidationRequest struct {
	Validator   common.Address
	TokenID     TokenID
	URI         string
	RequestHash common.Hash
}

// ValidationResponse answers with 0..100; later answers replace earlier ones.
type ValidationResponse struct {
	Validator    common.Address
	TokenID      TokenID
	RequestHash  common.Hash
	Response     uint8
	URI          string
	ResponseHash common.Hash
	Tag          string
}

// Upgraded says that a proxy changed its implementation.
type Upgraded struct{ Implementation common.Address }

// Initialized says that a proxy ran an initializer of that version.
type Initialized struct{ Version uint64 }

// OwnershipTransferred says that a registry's administrator changed.
type OwnershipTransferred struct{ Previous, New common.Address }

// EIP712DomainChanged is ERC-5267's hint.
type EIP712DomainChanged struct{}

// TicketConsumed says that a feedback gateway wrote a rating for Payer, in the same transaction as the rating, whose
// client is the gateway. The gateway is the log's address.
type TicketConsumed struct {
	TicketID     common.Hash
	Payer        common.Address
	TokenID      TokenID
	Agent        common.Address // the agent's address as the gateway knows it
	FeedbackHash common.Hash    // that of the rating
}

// TreasuryEvent is any event of an OpenFiTreasury, which is the log's address.
type TreasuryEvent struct {
	Name string // of the event; TreasuryUnreadable for a log that is none of the contract's
	// Agent, Run and Task are keccak256 of slug and ids; zero where the event names none.
	Agent, Run, Task common.Hash
	Fields           json.RawMessage // an object of texts and booleans
}

// TreasuryUnreadable is the Name of a treasury's log that does not decode. Its Fields are topics and data.
const TreasuryUnreadable = "Unreadable"

// Undecoded is a log of a followed registry whose meaning the known ABI does not
// give. It is kept so that a later version can read it, and counts as a gap.
type Undecoded struct{ Reason UndecodedReason }

// UndecodedReason is why a log is Undecoded.
type UndecodedReason string

// Reasons of Undecoded.
const (
	// LegacyEvent: an event of an ABI from before the current one, which gives
	// the same names other arguments.
	LegacyEvent UndecodedReason = "legacy_event"
	// MalformedEvent: a current event's topic with arguments that no registry of
	// this ABI emits.
	MalformedEvent UndecodedReason = "malformed_event"
)

// AgentOf names the one agent an event concerns, false when it concerns none or
// several.
func AgentOf(e Event) (TokenID, bool) {
	switch e := e.(type) {
	case Transfer:
		return e.TokenID, true
	case Registered:
		return e.TokenID, true
	case URIUpdated:
		return e.TokenID, true
	case MetadataSet:
		return e.TokenID, true
	case MetadataUpdate:
		return e.TokenID, true
	case Approval:
		return e.TokenID, true
	case NewFeedback:
		return e.TokenID, true
	case FeedbackRevoked:
		return e.TokenID, true
	case ResponseAppended:
		return e.TokenID, true
	case ValidationRequest:
		return e.TokenID, true
	case ValidationResponse:
		return e.TokenID, true
	case TicketConsumed:
		return e.TokenID, true
	}
	return TokenID{}, false
}

// Kind returns KindTransfer.
func (Transfer) Kind() EventKind { return KindTransfer }

// Kind returns KindRegistered.
func (Registered) Kind() EventKind { return KindRegistered }

// Kind returns KindURIUpdated.
func (URIUpdated) Kind() EventKind { return KindURIUpdated }

// Kind returns KindMetadataSet.
func (MetadataSet) Kind() EventKind { return KindMetadataSet }

// Kind returns KindMetadataUpdate.
func (MetadataUpdate) Kind() EventKind { return KindMetadataUpdate }

// Kind returns KindBatchMetadataUpdate.
func (BatchMetadataUpdate) Kind() EventKind { return KindBatchMetadataUpdate }

// Kind returns KindApproval.
func (Approval) Kind() EventKind { return KindApproval }

// Kind returns KindApprovalForAll.
func (ApprovalForAll) Kind() EventKind { return KindApprovalForAll }

// Kind returns KindNewFeedback.
func (NewFeedback) Kind() EventKind { return KindNewFeedback }

// Kind returns KindFeedbackRevoked.
func (FeedbackRevoked) Kind() EventKind { return KindFeedbackRevoked }

// Kind returns KindResponseAppended.
func (ResponseAppended) Kind() EventKind { return KindResponseAppended }

// Kind returns KindValidationRequest.
func (ValidationRequest) Kind() EventKind { return KindValidationRequest }

// Kind returns KindValidationResponse.
func (ValidationResponse) Kind() EventKind { return KindValidationResponse }

// Kind returns KindUpgraded.
func (Upgraded) Kind() EventKind { return KindUpgraded }

// Kind returns KindInitialized.
func (Initialized) Kind() EventKind { return KindInitialized }

// Kind returns KindOwnershipTransferred.
func (OwnershipTransferred) Kind() EventKind { return KindOwnershipTransferred }

// Kind returns KindEIP712DomainChanged.
func (EIP712DomainChanged) Kind() EventKind { return KindEIP712DomainChanged }

// Kind returns KindTicketConsumed.
func (TicketConsumed) Kind() EventKind { return KindTicketConsumed }

// Kind returns KindTreasuryEvent.
func (TreasuryEvent) Kind() EventKind { return KindTreasuryEvent }

// Kind returns KindUndecoded.
func (Undecoded) Kind() EventKind { return KindUndecoded }
