package repute

import "encoding/json"

// FeedbackFile is the file behind a rating's feedbackURI. It only claims: the rated agent, the rater and the value are
// on the chain. Strings are as written, valid UTF-8 without NUL and bounded; "" and nil mean absent.
type FeedbackFile struct {
	Registry  string // eip155:{chain}:{address}
	TokenID   *TokenID
	Client    string // eip155:{chain}:{address}, often the address alone
	CreatedAt string // ISO 8601 by the standard
	// Value is a decimal number as written: an integer that Decimals applies to, or
	// a number with a fraction.
	Value    string
	Decimals *uint8 // nil when absent
	// Rating is the number that older files give instead of Value (score, rating).
	Rating string
	// Scale is the scale that the value is on, nil when the file does not say or contradicts itself.
	Scale    *FeedbackScale
	Tag1     string
	Tag2     string
	Endpoint string
	Text     string // for people: text, comment, review, …
	MCP      FeedbackMCP
	A2A      FeedbackA2A
	OASF     FeedbackOASF
	Payment  *PaymentClaim
	Extra    map[string]json.RawMessage // unknown members, as written
}

// FeedbackScale says between which numbers a value lies.
type FeedbackScale struct {
	Min string // a decimal number as written, "" when absent
	Max string // a decimal number as written
}

// FeedbackMCP says which part of an MCP server was used.
type FeedbackMCP struct {
	Tool     string
	Prompt   string
	Resource string
}

// FeedbackA2A says what was asked of an A2A agent.
type FeedbackA2A struct {
	Skills    []string
	ContextID string
	TaskID    string
}

// FeedbackOASF says what was asked for in terms of OASF.
type FeedbackOASF struct {
	Skills  []string
	Domains []string
}

// PaymentClaim is a feedback file's proofOfPayment as written: a claim to be checked
// on chain, no proof by itself.
type PaymentClaim struct {
	From    string // address
	To      string // address
	ChainID string // decimal, or eip155:{chain}
	TxHash  string
}
