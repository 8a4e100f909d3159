package agentjson

import (
	"encoding/json"

	"repute"
)

// Document is the kind of agent.json files.
const Document repute.DocumentKind = "agent-json"

// Version numbers the parser. Stored parses are keyed by it: raise it with every change that alters what Parse returns
// for any document.
const Version = 1

// MaxBytes is the size up to which a manifest is read.
const MaxBytes = 512 << 10

// Manifest is an agent.json file. Its strings are valid UTF-8 without NUL and bounded; absent members are zero.
type Manifest struct {
	Version       string
	Origin        string // the host that the manifest speaks for, in lower case
	PayoutAddress string
	DisplayName   string
	Description   string
	Identity      *Identity
	// Intents are in the order written; a name that is used twice is there twice.
	Intents     []Intent
	Bounty      *Reward // of intents without their own
	Incentive   *Reward // of intents without their own
	X402        *X402   // of versions before 1.3; Payments wins
	Payments    *Payments
	Commitments *Commitments
	Extensions  json.RawMessage            // as written
	Extra       map[string]json.RawMessage // x- members and unknown ones, as written
}

// Identity says who publishes the manifest. Nothing in it is proven: see Verify.
type Identity struct {
	DID       string
	PublicKey string // Ed25519, base64url
	IssuerID  string // in the Open Agent Trust Registry
}

// Intent is one thing that the service does.
type Intent struct {
	Name        string
	Description string
	Endpoint    string // as written
	Method      string // POST where an endpoint has no method
	// URL is the address to call. It is empty without an endpoint and for an endpoint outside the origin, which MUST
	// NOT be called.
	URL        string
	Parameters []Parameter // in the order written
	Returns    *Returns
	Price      *Price
	Bounty     *Reward
	Incentive  *Reward
	X402       *IntentX402 // of versions before 1.3; Payments wins
	Payments   *IntentPayments
	Extensions json.RawMessage            // as written
	Extra      map[string]json.RawMessage // x- members and unknown ones, as written
}

// Parameter is one input of an intent.
type Parameter struct {
	Name        string
	Type        string
	Required    bool
	Description string
	Enum        []json.RawMessage // allowed values, nil for any
	Default     json.RawMessage   // nil without
}

// Returns describes what an intent answers.
type Returns struct {
	Type        string
	Description string
	Properties  json.RawMessage // as written
}

// Price is what the provider charges for an intent.
type Price struct {
	Amount    Decimal
	Currency  string // USD or USDC
	Model     string // per_call, per_unit or flat; per_call where none is given
	UnitParam string // the parameter that counts units, of per_unit
	FreeTier  uint64 // calls before the price applies
	Networks  []string
}

// Reward is a bounty, which the provider pays for a completed intent, or an incentive, which the provider asks for.
type Reward struct {
	Type     string // cpa: for each completed action
	Rate     Decimal
	Currency string // USDC
	Splits   *Splits
}

// Splits divides a bounty. The shares add up to 1; absent ones are "".
type Splits struct {
	Orchestrator, Platform, Referrer Decimal
}

// X402 is how the service is paid by x402.
type X402 struct {
	Supported *bool // nil where the manifest does not say
	Networks  []Network
	Recipient string
}

// Network is a place where x402 payments settle.
type Network struct {
	Network, Asset, Contract, Facilitator string
}

// IntentX402 overrides for one intent how it is paid by x402.
type IntentX402 struct {
	Supported   *bool
	Direct      Decimal // price of one request; "" without
	Ticket      Decimal // price of one request with a prepaid ticket; "" without
	Description string
	Pricing     []NetworkPrice
}

// NetworkPrice is the price on one network.
type NetworkPrice struct {
	Network        string
	Direct, Ticket Decimal
}

// Payments are the payment protocols of the service.
type Payments struct {
	Accounts
	X402 *X402
}

// IntentPayments overrides payment protocols for one intent.
type IntentPayments struct {
	Accounts
	X402 *IntentX402
}

// Accounts are what the payment protocols of the service and those of an intent have in common.
type Accounts struct {
	Protocols []string // all names, also x402, in the order written
	L402      *Account
	MPP       *Account
	Other     map[string]json.RawMessage // protocols that are not known, as written
}

// Account is how the service is paid by L402 (Lightning) or a managed provider (MPP).
type Account struct {
	Version          string // of L402
	LightningAddress string
	LNURL            string
	StripeAccount    string
	Provider         string
	Description      string
	Recipient        string
}

// Commitments are promises about the service's behavior.
type Commitments struct {
	SchemaVersion string
	Entries       []Commitment
	// Raw is the array of entries as written: signatures are over its canonical form.
	Raw       json.RawMessage
	Signature string // Ed25519, base64url; "" for unsigned ones
}

// Commitment is one promise.
type Commitment struct {
	Type       string // latency_bound, uptime_sla, data_residency, …
	Constraint string // for people, e.g. "p99 < 500ms"
	Verifiable bool   // the publisher says that others can measure it
	Ref        string // URL of the details
}
