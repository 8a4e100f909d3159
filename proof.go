package repute

import (
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// HashResult is the comparison of a hash that was given on chain with the bytes behind the URI that
// was given with it.
type HashResult string

// Results of the check of a hash.
const (
	HashVerified    HashResult = "verified"    // the bytes have the hash
	HashMismatch    HashResult = "mismatch"    // the bytes have another hash
	HashAbsent      HashResult = "absent"      // no hash was given, and the URI proves nothing by itself
	HashUnavailable HashResult = "unavailable" // a hash was given, but no bytes are known
)

// Kinds of proof of a file's bytes.
const (
	ProvedByHash = "keccak256" // the hash given on chain
	ProvedByCID  = "cid"       // the CID of an ipfs URI, block by block
	ProvedOnURI  = "uri"       // the bytes are written on chain, in the URI
)

// HashProof is the result of the comparison with its basis.
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

// File describes a file that feedback, a response or a validation names, and whether it is the
// intended file.
type File struct {
	Status    DocumentStatus // invalid: the file of a rating that is no valid feedback file
	Source    string         // data, inline, https, ipfs; "" before the first fetch
	SHA256    [32]byte       // zero when no bytes are known
	Keccak    common.Hash    // of the bytes; zero when they are not known
	Size      int64          // bytes
	Dropped   bool           // the bytes were read and are no longer stored
	FetchedAt time.Time      // zero when never
	Reason    string         // code of the last failure, "" when none (package resolver)
	Detail    string         // text of the last failure
	Proof     HashProof
	// Feedback is the content of a rating's file without unknown members; nil for other files and
	// for a long one.
	Feedback     *FeedbackFile
	Problems     []Problem // of Feedback, the first ten
	ProblemCount int64     // all of them
}

// DomainResult is whether a domain confirms an agent that names it.
type DomainResult string

// Results of the check of a domain.
const (
	DomainProven      DomainResult = "proven"      // its well-known file names the agent
	DomainRefused     DomainResult = "refused"     // its well-known file names other agents, or none, or does not exist
	DomainUnavailable DomainResult = "unavailable" // its well-known file could not be read, not yet, or not for a week
)

// DomainProof describes one domain that an agent's endpoints use.
type DomainProof struct {
	Domain    string // lower case
	Result    DomainResult
	URL       string    // of the well-known file
	SHA256    [32]byte  // of the well-known file's bytes, zero when they are not known
	CheckedAt time.Time // time of the last try, zero when there was none
	NextCheck time.Time // zero when no try is planned
	Reason    string    // code of the last failure, "" when none
	Detail    string    // text of the last failure
}

// LinkedAgent is an agent that is linked in both directions: each agent's file names the other.
// Their reputations are shown next to each other and never added.
type LinkedAgent struct {
	ID       AgentID
	Name     string // of its own registration file, hostile
	SameFile bool   // both show the same bytes
}

// DocumentVersion is one result of reading a URI of an agent: new bytes, or the first failure after
// them. Repeated results are not stored.
type DocumentVersion struct {
	URI       string // raw bytes of the chain, no more than the first 2048; see URISize
	URISize   int64  // bytes on chain
	FromBlock uint64 // the agent had the URI from this block on
	ToBlock   uint64 // first block without this version; 0: it is current
	FetchedAt time.Time
	Source    string   // "" for a failure
	SHA256    [32]byte // zero for a failure
	Size      int64    // bytes
	Kept      bool     // the bytes are still stored
	Reason    string   // code of a failure, "" for success
}

// Refresh is the answer to a requested refresh.
type Refresh struct {
	Queued      bool      // false: too early, nothing was done
	NextAllowed time.Time // earliest time of the next requested refresh
}

// Content is the bytes of a document and their description.
type Content struct {
	SHA256    [32]byte
	Keccak    common.Hash // zero when not computed yet
	Size      int64
	MediaType string // as the source declared it: hostile, may be ""
	FirstSeen time.Time
	Body      []byte
}

// DenyKind is the kind of entity that a denial names.
type DenyKind string

// Kinds of denials.
const (
	DenySHA256 DenyKind = "sha256" // bytes, by their sha256
	DenyCID    DenyKind = "cid"    // an ipfs document, by its CID in any form
	DenyHost   DenyKind = "host"   // everything on a host, whatever the port
	DenyAgent  DenyKind = "agent"  // the documents of an agent
)

// Denial is an entry of the operator's deny-list: not fetched, shown or served.
type Denial struct {
	Kind    DenyKind
	Value   string
	Reason  string // shown to callers
	Created time.Time
}
