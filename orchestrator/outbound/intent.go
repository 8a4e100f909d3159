package outbound

import "encoding/json"

// IntentRequest asks for an intent of a domain's agent.json.
type IntentRequest struct {
	Intent string                     `json:"intent"` // NAME@DOMAIN
	Params map[string]json.RawMessage `json:"params,omitempty"`
	// Max is the most that the call may cost, in dollars; empty: nothing is paid, and an intent with a price is not
	// called.
	Max string `json:"max,omitempty"`
	// Key distinguishes the paid requests of a step, as in PaidRequest.
	Key string `json:"key,omitempty"`
}

// IntentPlan is what an intent takes, by the manifest that was read: a request, or instructions.
type IntentPlan struct {
	Request HTTPRequest `json:"request"`
	// Max is the most that is paid for the answer, in dollars; empty: nothing.
	Max          string        `json:"max,omitempty"`
	Instructions *Instructions `json:"instructions,omitempty"` // of an intent without an endpoint
}

// Instructions are what an intent without an endpoint says. They are untrusted text: data, and no orders to a model.
type Instructions struct {
	Intent      string                     `json:"intent"`
	Origin      string                     `json:"origin"`
	Description string                     `json:"description"`
	Params      map[string]json.RawMessage `json:"params,omitempty"`
}

// IntentResponse is an answer and what was paid for it, or instructions.
type IntentResponse struct {
	*PaidResponse
	Instructions *Instructions `json:"instructions,omitempty"`
}
