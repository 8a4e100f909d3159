package policy

import (
	"math"

	"repute"
)

// Input is what rules can name. Amounts are decimal strings in the smallest unit: use
// the functions lt, lte, gt, gte, add, sub, mul, div on them. The names of members in rules are those of the cel tags;
// to rename one breaks stored policies. What a phase does not know is empty, and rules that name it see the empty
// value, not an error.
type Input struct {
	Phase   string // policy before the work begins, call for each transaction, payment for each payment by x402
	Task    Task
	Plan    Plan
	Agent   Agent
	Call    Call    // empty in other phases than call
	Payment Payment `json:",omitzero"` // empty in other phases than payment
}

// Task is what was asked for. Goal and Tags come from the caller and are not trusted: a rule may be stricter because of
// them, but should not be milder.
type Task struct {
	ID          string   `cel:"id"`
	Goal        string   `cel:"goal"`
	Coordinator string   `cel:"coordinator"` // slug
	Value       string   `cel:"value"`       // at risk, in wei
	Tags        []string `cel:"tags"`
	Budget      Budget   `cel:"budget"`
}

// Budget bounds a run. A count of 0 allows none. Bounds is what it is made from. Empty texts and 0 for Tokens mean no
// bound, while 0 for the other counts means none at all: these have a default, so that every stored task has them.
type Budget struct {
	Steps         int64  `cel:"steps" json:"maxSteps"`
	ToolCalls     int64  `cel:"toolCalls" json:"maxToolCalls"`
	RuntimeMS     int64  `cel:"runtimeMs" json:"maxRuntimeMs"`
	OnchainWrites int64  `cel:"onchainWrites" json:"maxOnchainWrites"`
	GasWei        string `cel:"gasWei" json:"maxGasWei,omitempty"` // decimal; empty: gas has no limit
	// PaymentUSD bounds what is paid for answers, in dollars; empty: the maxTask of the policy's payments.
	PaymentUSD string `cel:"paymentUsd" json:"maxPaymentUsd,omitempty"`
	Tokens     int64  `cel:"tokens" json:"maxTokens,omitempty"`   // of language models; 0: no limit
	CostUSD    string `cel:"costUsd" json:"maxCostUsd,omitempty"` // dollars, decimal; empty: no limit
}

// Plan is what the coordinator means to do.
type Plan struct {
	Steps  int64    `cel:"steps"`
	Agents []string `cel:"agents"` // slugs, each once
}

// Agent is what is indexed of the agent that acts: the coordinator, or a sub-agent when
// it is called. Numbers are those of one view of one chain. What is unknown is the zero value, which reaches no
// threshold above 0.
type Agent struct {
	Slug       string  `cel:"slug"`
	ID         string  `cel:"id"`     // eip155:chain:registry:id, empty without identity
	Status     string  `cel:"status"` // rated, thin or unrated
	Score      float64 `cel:"score"`  // -100 to 100, 0 when unrated
	Low        float64 `cel:"low"`
	High       float64 `cel:"high"`
	Confidence float64 `cel:"confidence"` // 0 to 1
	Tier       int64   `cel:"tier"`       // 0 to 4
	// Verified says that every block that the final score follows from is proven to be indexed completely.
	Verified bool            `cel:"verified"`
	Gates    map[string]bool `cel:"gates"` // passed or not, by id
	// Trust01 is OpenFi's score, 0 to 1; the four below it and Validation (disabled,
	// passed, failed) are what it is made of.
	Trust01              float64 `cel:"trust01"`
	IdentityExists       bool    `cel:"identityExists"`
	RegistrationResolves bool    `cel:"registrationResolves"`
	AgentJSONResolves    bool    `cel:"agentJsonResolves"`
	OperatorMatches      bool    `cel:"operatorMatches"`
	Validation           string  `cel:"validation"`
	// WhyUnrated says why there is no score, or why it is thin. It is empty where the reason is that no rater of
	// the agent has weight, neither from roots nor from sources.
	WhyUnrated string `cel:"whyUnrated" json:",omitempty"`
	// Unproven says why nothing shows that the agent's program speaks for its identity; empty
	// where something does, or nothing must.
	Unproven string `cel:"unproven" json:",omitempty"`
}

// Call is a transaction that an agent wants to send. Purpose is the agent's own text and proves nothing.
type Call struct {
	ChainID  uint64 `cel:"chainId"`
	Target   string `cel:"target"`   // checksummed address
	Selector string `cel:"selector"` // 0x and eight digits, empty without data
	Value    string `cel:"value"`    // in wei
	Token    string `cel:"token"`    // checksummed address, empty for native coin
	Amount   string `cel:"amount"`   // of Token
	Purpose  string `cel:"purpose"`
	// Payee is the id of the agent that is paid; the runtime compares Target with the agent's
	// wallet. Empty where the payment names no agent.
	Payee    string `cel:"payee" json:",omitempty"`
	Function string `cel:"function" json:",omitempty"` // name and types, empty where it is not known
	// Args are the decoded arguments by name, or position where they have none; empty where
	// the call could not be decoded. Integers are decimal strings, addresses checksummed,
	// bytes hex; lists are lists, tuples maps.
	Args map[string]any `cel:"args" json:",omitempty"`
}

// Payment is a payment by x402 that an agent wants to make. The server's offer gives Network, Asset, To and Amount; the
// index gives Payee and what follows.
type Payment struct {
	Host    string  `cel:"host" json:"host"` // of the server in lower case and ASCII, with a port where that is not the usual one
	Network string  `cel:"network" json:"network"`
	Asset   string  `cel:"asset" json:"asset"`   // checksummed address of the token
	To      string  `cel:"to" json:"to"`         // checksummed address
	Amount  string  `cel:"amount" json:"amount"` // in the token's smallest unit
	USD     float64 `cel:"usd" json:"usd"`       // what it counts for, rounded up to millionths
	// Payee is the id of the agent that is paid, empty where nobody can be named; what follows is then empty too.
	Payee  string  `cel:"payee" json:"payee,omitempty"`
	By     string  `cel:"by" json:"by,omitempty"`         // how it was found: wallet, owner or domain
	Status string  `cel:"status" json:"status,omitempty"` // rated, thin or unrated
	Score  float64 `cel:"score" json:"score"`             // -100 to 100, 0 when unrated
	Low    float64 `cel:"low" json:"low"`
	Tier   int64   `cel:"tier" json:"tier"` // 0 to 4, 0 where the index gives none
}

// Terms are what a person approves of: the payment without what the index says of its payee now. USD is left out as
// well, because it follows from Asset and Amount. An approval holds while the terms are equal, so that a score that
// moves meanwhile does not void it.
func (p *Payment) Terms() Payment {
	return Payment{Host: p.Host, Network: p.Network, Asset: p.Asset, To: p.To, Amount: p.Amount, Payee: p.Payee}
}

// Micros is USD in millionths. Rounding undoes the conversion to a float, which is exact to a millionth for sums below
// billions.
func (p *Payment) Micros() repute.Micros { return repute.Micros(math.Round(p.USD * 1e6)) }

// Statuses of agents: with enough vouched evidence, with little of it, and without.
const (
	StatusRated   = "rated"
	StatusThin    = "thin"
	StatusUnrated = "unrated"
)

// States of OpenFi's validation.
const (
	ValidationDisabled = "disabled"
	ValidationPassed   = "passed"
	ValidationFailed   = "failed"
)
