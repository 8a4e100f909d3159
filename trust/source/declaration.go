package source

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
)

// Source is the declaration of one kind of credential.
type Source struct {
	ID      string `yaml:"id" json:"id"`
	Version int    `yaml:"version" json:"version"` // raised when the meaning of an answer changes
	Name    string `yaml:"name" json:"name"`
	Issuer  string `yaml:"issuer" json:"issuer"`
	// Meaning completes the sentence "a credential says that the address ...".
	Meaning string      `yaml:"meaning" json:"meaning"`
	Class   Class       `yaml:"class" json:"class"`
	Weight  fixed.Fixed `yaml:"weight" json:"weight"`
	Price   *Price      `yaml:"price,omitempty" json:"price,omitempty"` // nil: no quote is known
	// MaturityDays is how long after its issue a credential begins to count.
	MaturityDays int `yaml:"maturityDays" json:"maturityDays"`
	// AgeDays is how long after its issue it counts; 0 where every reading shows that it is still held.
	AgeDays int `yaml:"ageDays" json:"ageDays"`
	// KeepDays is how long the last verified credential of a rater counts when a reading is incomplete; 0: not at all.
	KeepDays int `yaml:"keepDays" json:"keepDays"`
	// CarryDays is how long a credential that no reading confirms keeps its time of issue, where that is the time of the
	// first reading. It has no weight meanwhile, but need not mature anew. 0: not at all.
	CarryDays int    `yaml:"carryDays,omitempty" json:"carryDays,omitempty"`
	Bounds    Bounds `yaml:"bounds" json:"bounds"`
	Homes     []Home `yaml:"homes" json:"homes"`
	Read      Method `yaml:"read" json:"read"`

	plan *plan
}

// Price is what one credential costs on the market, at the lower end of a published quote.
type Price struct {
	USD       fixed.Fixed `yaml:"usd" json:"usd"`
	Date      string      `yaml:"date" json:"date"` // of the quote, as 2006-01-02
	Reference string      `yaml:"reference" json:"reference"`
}

// Home is a chain on which a source can be read.
type Home struct {
	Chain uint64 `yaml:"chain" json:"chain"`
	// FromBlock is at or before the first log that the events of Read ask for.
	FromBlock uint64              `yaml:"fromBlock,omitempty" json:"fromBlock,omitempty"`
	Contracts map[string]Contract `yaml:"contracts" json:"contracts"` // by the names that Read uses
}

// Contract is a contract that a source asks.
type Contract struct {
	Address common.Address `yaml:"address" json:"address"`
	// Implementations are those that the contract may delegate to by its EIP-1967 slot. FirstSeen stands for the one
	// that the first reading found. Without any the contract must not be a proxy.
	Implementations []string `yaml:"implementations,omitempty" json:"implementations,omitempty"`
}

// FirstSeen in a list of implementations pins the one that the first reading found.
const FirstSeen = "first-seen"

// Accepts reports whether the contract may delegate to an implementation, the zero address where it is no proxy.
// first is the one that an earlier reading pinned, nil where there was none.
func (c Contract) Accepts(implementation common.Address, first *common.Address) bool {
	if implementation == (common.Address{}) && len(c.Implementations) == 0 {
		return true
	}
	for _, text := range c.Implementations {
		if text == FirstSeen && (first == nil || *first == implementation) ||
			text != FirstSeen && common.HexToAddress(text) == implementation {
			return true
		}
	}
	return false
}

// Home returns where the source is read on a chain, nil when it is not.
func (s *Source) Home(chain uint64) *Home {
	at := slices.IndexFunc(s.Homes, func(h Home) bool { return h.Chain == chain })
	if at < 0 {
		return nil
	}
	return &s.Homes[at]
}

// ReadOn returns the chain on which the source is read for raters of a chain.
func (s *Source) ReadOn(chain uint64) uint64 {
	if s.Read.Payments != nil || s.Home(chain) != nil {
		return chain
	}
	return s.Homes[0].Chain
}

// Method says how a source is read: by EAS, by Calls, by Events alone or by Payments, one of them.
type Method struct {
	EAS   *EAS   `yaml:"eas,omitempty" json:"eas,omitempty"`
	Calls []Call `yaml:"calls,omitempty" json:"calls,omitempty"`
	// Events are the logs that tell since when an address has its credential, and without Calls whether it has one.
	Events []Event `yaml:"events,omitempty" json:"events,omitempty"`
	// Payments reads no contract but the verified payments that the index has of raters.
	Payments *Payments `yaml:"payments,omitempty" json:"payments,omitempty"`
	// Person names the value that is equal for all addresses of one person. Without it every address is one.
	Person string `yaml:"person,omitempty" json:"person,omitempty"`
	// KeepFirst keeps the person that an address was bound to first, where anybody can bind it again.
	KeepFirst bool `yaml:"keepFirst,omitempty" json:"keepFirst,omitempty"`
	// Issued names the value with the time of issue. Without it and without Events a credential is issued when a reading
	// first finds it.
	Issued  string `yaml:"issued,omitempty" json:"issued,omitempty"`
	Expires string `yaml:"expires,omitempty" json:"expires,omitempty"`
	Revoked string `yaml:"revoked,omitempty" json:"revoked,omitempty"`
}

// EAS reads an attestation of the Ethereum Attestation Service: an indexer names the uid of an address's latest
// attestation, and the registry has its record. The home's contracts are named indexer and registry. With Logs there is
// no indexer: the logs of the registry name the latest attestation that is not revoked.
type EAS struct {
	Logs     bool             `yaml:"logs,omitempty" json:"logs,omitempty"`
	Schema   Schema           `yaml:"schema" json:"schema"`
	Attester []common.Address `yaml:"attester" json:"attester"` // any of them
}

// Schema is an EAS schema. Its id commits to all other members, and so to who can attest.
type Schema struct {
	ID        common.Hash    `yaml:"id" json:"id"`
	Text      string         `yaml:"text" json:"text"`
	Resolver  common.Address `yaml:"resolver" json:"resolver"`
	Revocable bool           `yaml:"revocable" json:"revocable"`
}

// Call is one call of a contract. Later calls may use what earlier ones returned.
type Call struct {
	Contract string `yaml:"contract" json:"contract"`
	// Function is a signature with names for what it returns, e.g. lookupHuman(address) returns (uint256 humanId).
	Function string `yaml:"function" json:"function"`
	// Arguments are rater, names of returned values, or literals.
	Arguments []string    `yaml:"arguments,omitempty" json:"arguments,omitempty"`
	Holds     []Condition `yaml:"holds,omitempty" json:"holds,omitempty"`
	// No lists the errors that mean "no", e.g. AttestationNotFound(). Any other failure is no answer.
	No []string `yaml:"no,omitempty" json:"no,omitempty"`
}

// Meanings of events.
const (
	Issued  = "issued"  // the rater has the credential from this log on; again: it is renewed
	Revoked = "revoked" // the rater has it no more
)

// Event is a kind of log about credentials.
type Event struct {
	Contract string `yaml:"contract" json:"contract"`
	// Event is its declaration, e.g. Transfer(address indexed from, address indexed to, uint256 indexed tokenId).
	Event string `yaml:"event" json:"event"`
	// Rater names the indexed address that the log is about, and Person the value that tells its credentials apart.
	Rater  string `yaml:"rater" json:"rater"`
	Person string `yaml:"person,omitempty" json:"person,omitempty"`
	Means  string `yaml:"means" json:"means"` // Issued or Revoked
	// Holds are conditions for values of the event. A log that does not meet them says nothing.
	Holds []Condition `yaml:"holds,omitempty" json:"holds,omitempty"`
}

// Condition is what a returned value must be; exactly one member beside Value is set.
type Condition struct {
	Value   string `yaml:"value" json:"value"`
	NotZero bool   `yaml:"notZero,omitempty" json:"notZero,omitempty"`
	AtLeast string `yaml:"atLeast,omitempty" json:"atLeast,omitempty"` // a decimal number
	// Equals lists an argument or literal as in Call.Arguments; any of them may match.
	Equals []string `yaml:"equals,omitempty" json:"equals,omitempty"`
}
