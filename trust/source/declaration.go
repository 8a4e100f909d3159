package source

import (
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
)

// Source is the declaration of one kind of credential: one entry under sources in the file. Parse makes it. Durations
// in days count from times of blocks and never from a local clock. Name, Issuer and Meaning are shown to people and
// change no score, but are part of the policy's hash.
type Source struct {
	ID      string `yaml:"id" json:"id"`
	Version int    `yaml:"version" json:"version"` // raised when the meaning of an answer changes
	Name    string `yaml:"name" json:"name"`
	Issuer  string `yaml:"issuer" json:"issuer"`
	// Meaning completes the sentence "a credential says that the address ...".
	Meaning string      `yaml:"meaning" json:"meaning"`
	Class   Class       `yaml:"class" json:"class"`
	Weight  fixed.Fixed `yaml:"weight" json:"weight"`                   // of one credential, above 0 and at most 1
	Price   *Price      `yaml:"price,omitempty" json:"price,omitempty"` // nil: no price is published
	// MaturityDays is how long after its issue a credential begins to count.
	MaturityDays int `yaml:"maturityDays" json:"maturityDays"`
	// AgeDays is for how long a credential counts after its issue or its last renewal. 0: as long as every reading
	// confirms it.
	AgeDays int `yaml:"ageDays" json:"ageDays"`
	// KeepDays is for how long the last verified credential of a rater counts while readings do not answer for the
	// rater. 0: not at all.
	KeepDays int `yaml:"keepDays" json:"keepDays"`
	// CarryDays is for how long an unconfirmed credential keeps its time of issue, for sources that are not Dated. The
	// credential has no weight meanwhile, but does not have to mature again afterwards. 0: not at all.
	CarryDays int `yaml:"carryDays,omitempty" json:"carryDays,omitempty"`
	// Bounds are the units of this source that may count at one agent.
	Bounds Bounds `yaml:"bounds" json:"bounds"`
	Homes  []Home `yaml:"homes" json:"homes"`
	Read   Method `yaml:"read" json:"read"`

	plan *plan // Read, compiled by Parse
}

// Price is what one credential costs on the market, at the lower end of a published quote. The lower end is the safe
// side: weight follows the price, and an attacker pays the lowest one.
type Price struct {
	USD       fixed.Fixed `yaml:"usd" json:"usd"`
	Date      string      `yaml:"date" json:"date"` // of the quote, as 2006-01-02
	Reference string      `yaml:"reference" json:"reference"`
}

// Home is a chain on which a source can be read. A source may have one home for each chain; raters of a chain without
// one are looked up in the first (see Source.ReadOn).
type Home struct {
	Chain uint64 `yaml:"chain" json:"chain"`
	// FromBlock is a block at or before the first log of the events of Read. Logs are read from this block on.
	FromBlock uint64              `yaml:"fromBlock,omitempty" json:"fromBlock,omitempty"`
	Contracts map[string]Contract `yaml:"contracts" json:"contracts"` // by the names that Read uses
}

// Contract is a contract that a source calls or reads logs of.
type Contract struct {
	Address common.Address `yaml:"address" json:"address"`
	// Implementations are the addresses that the contract may delegate to by its EIP-1967 slot. FirstSeen stands for
	// the implementation that the first reading found. An empty list means that the contract MUST NOT be a proxy.
	Implementations []string `yaml:"implementations,omitempty" json:"implementations,omitempty"`
}

// FirstSeen in a list of implementations accepts the implementation that the first reading found, and no later one.
const FirstSeen = "first-seen"

// Accepts reports whether the contract may delegate to an implementation, which is the zero address for a contract that
// is no proxy. first is the implementation that an earlier reading found, nil before the first reading. A contract that
// was a proxy and is none any more is refused where implementations are listed.
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

// Home returns the entry of a chain in Homes, nil when the source cannot be read on this chain.
func (s *Source) Home(chain uint64) *Home {
	at := slices.IndexFunc(s.Homes, func(h Home) bool { return h.Chain == chain })
	if at < 0 {
		return nil
	}
	return &s.Homes[at]
}

// ReadOn returns the chain on which the source is read for raters of a chain. Addresses are the same party on all EVM
// chains as long as they have a key; a contract account need not be.
func (s *Source) ReadOn(chain uint64) uint64 {
	if s.Read.Payments != nil || s.Home(chain) != nil {
		return chain
	}
	return s.Homes[0].Chain
}

// Method is how a source is read. It has one of these forms: EAS, Calls, Events, Calls and Events, or Payments. newPlan
// refuses other combinations. The zero values of the named members mean that the contract does not tell.
type Method struct {
	EAS   *EAS   `yaml:"eas,omitempty" json:"eas,omitempty"`
	Calls []Call `yaml:"calls,omitempty" json:"calls,omitempty"`
	// Events are the logs that give the time of issue of a credential. Without Calls they also show whether an address
	// has a credential.
	Events []Event `yaml:"events,omitempty" json:"events,omitempty"`
	// Payments reads no contract but the verified payments that the index has of raters.
	Payments *Payments `yaml:"payments,omitempty" json:"payments,omitempty"`
	// Person names the returned value that is equal for all addresses of one person. "": every address counts as a
	// different person.
	Person string `yaml:"person,omitempty" json:"person,omitempty"`
	// KeepFirst keeps the person that an address was bound to first. It is set for contracts that let anybody bind an
	// address again.
	KeepFirst bool `yaml:"keepFirst,omitempty" json:"keepFirst,omitempty"`
	// Issued names the returned value with the time of issue in Unix seconds. "" without Events: the time of issue is
	// that of the first reading that finds the credential.
	Issued  string `yaml:"issued,omitempty" json:"issued,omitempty"`
	Expires string `yaml:"expires,omitempty" json:"expires,omitempty"` // names the value with the time of expiry; "": none
	Revoked string `yaml:"revoked,omitempty" json:"revoked,omitempty"` // names the value with the time of revocation
}

// EAS reads an attestation of the Ethereum Attestation Service. An indexer contract returns the uid of the latest
// attestation of an address, and the registry contract returns the attestation. The contracts of the home MUST have the
// names indexer and registry. With Logs there is no indexer: the logs of the registry name the latest attestation that
// is not revoked.
type EAS struct {
	Logs     bool             `yaml:"logs,omitempty" json:"logs,omitempty"`
	Schema   Schema           `yaml:"schema" json:"schema"`
	Attester []common.Address `yaml:"attester" json:"attester"` // an attestation of any of them counts
}

// Schema is an EAS schema. Its id is the hash of the other members, so that no other contract can decide who attests.
type Schema struct {
	ID        common.Hash    `yaml:"id" json:"id"`
	Text      string         `yaml:"text" json:"text"`
	Resolver  common.Address `yaml:"resolver" json:"resolver"`
	Revocable bool           `yaml:"revocable" json:"revocable"`
}

// Call is one call of a contract. Later calls may use what earlier ones returned.
type Call struct {
	Contract string `yaml:"contract,omitempty" json:"contract,omitempty"` // its name in Home.Contracts; "" with At
	// At names a returned value: the address of the contract to call. The address MUST be that of a contract in Among;
	// otherwise the rater has no credential. Contracts that raters choose freely are never called, because one could
	// use up the gas of the calls that are made together with it.
	At    string   `yaml:"at,omitempty" json:"at,omitempty"`
	Among []string `yaml:"among,omitempty" json:"among,omitempty"` // names in Home.Contracts, only with At
	// Function is a signature with names for what it returns, e.g. lookupHuman(address) returns (uint256 humanId). A
	// function may return one string in place of words: a name of the Ethereum Name Service. A value x of this type has
	// the words x.node, x.label and x.parent.
	Function string `yaml:"function" json:"function"`
	// Arguments are the word rater, rater.reverse for the node of its reverse record, names of values that earlier
	// calls returned, or literals.
	Arguments []string `yaml:"arguments,omitempty" json:"arguments,omitempty"`
	// Holds are conditions for returned values. The rater has no credential when one of them is false.
	Holds []Condition `yaml:"holds,omitempty" json:"holds,omitempty"`
	// Gas is about how much gas the call takes. It decides how many calls are made in one request. 0: 20,000.
	Gas uint64 `yaml:"gas,omitempty" json:"gas,omitempty"`
	// No lists the errors that mean that the rater has no credential, e.g. AttestationNotFound(). After any other
	// failure the rater is Unknown.
	No []string `yaml:"no,omitempty" json:"no,omitempty"`
}

// Meanings of events.
const (
	Issued  = "issued"  // the rater has the credential from this log on; a second log renews it
	Revoked = "revoked" // the rater has no credential from this log on
)

// Event is a kind of log about credentials.
type Event struct {
	Contract string `yaml:"contract" json:"contract"`
	// Event is its declaration, e.g. Transfer(address indexed from, address indexed to, uint256 indexed tokenId).
	Event string `yaml:"event" json:"event"`
	// Rater names the indexed value with the address of the rater. Person names the value that distinguishes several
	// credentials of one rater; "": a rater has at most one.
	Rater  string `yaml:"rater" json:"rater"`
	Person string `yaml:"person,omitempty" json:"person,omitempty"`
	Means  string `yaml:"means" json:"means"` // Issued or Revoked
	// Holds are conditions for values of the event. A log that does not meet all of them is ignored.
	Holds []Condition `yaml:"holds,omitempty" json:"holds,omitempty"`
}

// Condition is a condition for a returned value. Exactly one of NotZero, AtLeast, Future and Equals MUST be set. Values
// are compared as words, so that Equals needs the type of Value.
type Condition struct {
	Value   string `yaml:"value" json:"value"` // name of the returned value
	NotZero bool   `yaml:"notZero,omitempty" json:"notZero,omitempty"`
	AtLeast string `yaml:"atLeast,omitempty" json:"atLeast,omitempty"` // a decimal number
	// Future is met by a time in Unix seconds after that of the block of the calls. It is not allowed in events.
	Future bool `yaml:"future,omitempty" json:"future,omitempty"`
	// Equals lists values in the form of Call.Arguments. The condition is met when any of them is equal.
	Equals []string `yaml:"equals,omitempty" json:"equals,omitempty"`
}
