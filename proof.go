package repute

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// HashResult compares a hash that was given on chain with the bytes behind the URI
// given beside it.
type HashResult string

// Results of the check of a hash.
const (
	HashVerified    HashResult = "verified"    // the bytes are those that were meant
	HashMismatch    HashResult = "mismatch"    // other bytes than those that were meant
	HashAbsent      HashResult = "absent"      // no hash was given, and the URI proves nothing by itself
	HashUnavailable HashResult = "unavailable" // a hash was given, but no bytes are known
)

// What proved a file's bytes.
const (
	ProvedByHash = "keccak256" // the hash given on chain
	ProvedByCID  = "cid"       // the CID of an ipfs URI, block by block
	ProvedOnURI  = "uri"       // the bytes are written on chain, in the URI
)

// HashProof is a verdict with what it rests on.
type HashProof struct {
	Result HashResult
	By     string // ProvedByHash, …; "" when nothing is proved
}

// JudgeHash compares given, the keccak256 that was committed to on chain or zero,
// with the bytes known: their keccak256, zero when none are, and their source
// (data, inline, https, ipfs). A hash that was given decides alone, whatever the
// URI; without one the standard takes a CID for the proof, and bytes in the URI
// itself are as much part of the chain.
func JudgeHash(given, keccak common.Hash, source string) HashProof {
	known := keccak != common.Hash{}
	switch {
	case given != common.Hash{} && !known:
		return HashProof{Result: HashUnavailable}
	case given != common.Hash{} && given == keccak:
		return HashProof{HashVerified, ProvedByHash}
	case given != common.Hash{}:
		return HashProof{Result: HashMismatch}
	case known && source == "ipfs":
		return HashProof{HashVerified, ProvedByCID}
	case known && (source == "data" || source == "inline"):
		return HashProof{HashVerified, ProvedOnURI}
	}
	return HashProof{Result: HashAbsent}
}

// File is what is known of a file that feedback, a response or a validation points
// to, and whether it is the file that was meant.
type File struct {
	Status    DocumentStatus // invalid: a rating's, read, and no feedback file or one with errors
	Source    string         // data, inline, https, ipfs; "" before the first fetch
	SHA256    [32]byte       // zero when no bytes are known
	Keccak    common.Hash    // of the bytes; zero when none are known
	Size      int64          // bytes
	Dropped   bool           // the bytes were known and are not kept any more
	FetchedAt time.Time      // zero when never
	Reason    string         // code of the last failure, "" when none (package resolver)
	Detail    string         // the failure in words
	Proof     HashProof
	// Feedback is what a rating's file says, without unknown members; nil for others
	// and for a long one.
	Feedback     *FeedbackFile
	Problems     []Problem // of Feedback, the first ten
	ProblemCount int64     // all of them
}

// DomainResult says whether a domain stands by an agent that names it.
type DomainResult string

// Results of the check of a domain.
const (
	DomainProven      DomainResult = "proven"      // its well-known file names the agent
	DomainRefused     DomainResult = "refused"     // its well-known file names other agents, or none, or is gone
	DomainUnavailable DomainResult = "unavailable" // its well-known file could not be read, not yet, or not for a week
)

// DomainProof is what is known of one domain that an agent's endpoints use.
type DomainProof struct {
	Domain    string // lower case
	Result    DomainResult
	URL       string    // of the well-known file
	SHA256    [32]byte  // of its bytes, zero when none are known
	CheckedAt time.Time // last try, zero when none was made yet
	NextCheck time.Time // zero when none is planned
	Reason    string    // code of the last failure, "" when none
	Detail    string    // the failure in words
}

// LinkedAgent is an agent of the same file's making: each one's file names the
// other. Their reputations are shown side by side and never added up.
type LinkedAgent struct {
	ID       AgentID
	Name     string // of its own registration file, hostile
	SameFile bool   // both show the same bytes
}

// DocumentVersion is one outcome of reading a URI that an agent had: new bytes or
// the first failure after them. Fetches that gave the same again are not kept.
type DocumentVersion struct {
	URI       string // raw bytes of the chain, no more than the first 2048; see URISize
	URISize   int64  // bytes on chain
	FromBlock uint64 // the agent had the URI from this block on
	ToBlock   uint64 // until before this one; 0: it still has
	FetchedAt time.Time
	Source    string   // "" for a failure
	SHA256    [32]byte // zero for a failure
	Size      int64    // bytes
	Kept      bool     // the bytes can still be had
	Reason    string   // code of a failure, "" for success
}

// Refresh answers the wish for a fetch out of turn.
type Refresh struct {
	Queued      bool      // false: too early, nothing was done
	NextAllowed time.Time // when the next one will be granted
}

// Content is bytes that were read and what is known of them.
type Content struct {
	SHA256    [32]byte
	Keccak    common.Hash // zero when not computed yet
	Size      int64
	MediaType string // as the source declared it: hostile, may be ""
	FirstSeen time.Time
	Body      []byte
}

// DenyKind is what a denial is about.
type DenyKind string

// Kinds of denials.
const (
	DenySHA256 DenyKind = "sha256" // bytes, by their sha256
	DenyCID    DenyKind = "cid"    // an ipfs document, by its CID in any form
	DenyHost   DenyKind = "host"   // everything a host serves, whatever the port
	DenyAgent  DenyKind = "agent"  // the documents of an agent
)

// Denial is an entry of the operator's deny-list: not fetched, shown or served.
type Denial struct {
	Kind    DenyKind
	Value   string
	Reason  string // shown to callers
	Created time.Time
}
