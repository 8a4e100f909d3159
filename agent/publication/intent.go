package publication

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"github.com/ethereum/go-ethereum/common"

	"repute/agent"
	"repute/agent/capability"
	"repute/manifest/agentjson"
	"repute/x402"
)

// Lengths that the specification asks for, in characters.
const (
	maxName                 = 100
	minIntent               = 10
	maxDescription          = 500
	maxParameterDescription = 200
	maxIntentName           = 64
)

// intent is a capability as the manifest offers it.
type intent struct {
	Name        string               `json:"name"`
	Description string               `json:"description"`
	Endpoint    string               `json:"endpoint"`
	Method      string               `json:"method"`
	Parameters  map[string]parameter `json:"parameters,omitempty"`
	Price       *price               `json:"price,omitempty"`
	Payments    *intentPayments      `json:"payments,omitempty"`
}

// price is what a call costs in USDC, the only token that the manifest has a member for. Amount is a JSON number.
type price struct {
	Amount   json.RawMessage `json:"amount"`
	Currency string          `json:"currency"`
	Model    string          `json:"model"`
}

type payments struct {
	X402 x402Doc `json:"x402"`
}

type x402Doc struct {
	Networks  []network `json:"networks"`
	Recipient string    `json:"recipient"`
}

type network struct {
	Network  string `json:"network"`
	Asset    string `json:"asset"`
	Contract string `json:"contract"`
}

type intentPayments struct {
	X402 intentX402 `json:"x402"`
}

// intentX402 says of an intent whether it is paid by x402, and for how much on which network.
type intentX402 struct {
	Supported   bool           `json:"supported"`
	Description string         `json:"description,omitempty"`
	Pricing     []networkPrice `json:"network_pricing,omitempty"`
}

type networkPrice struct {
	Network string          `json:"network"`
	Direct  json.RawMessage `json:"direct_price"`
}

// intentName is a capability's name in the form of intents: words joined by _, a letter first.
func intentName(capability string) string {
	name := strings.ReplaceAll(capability, "-", "_")
	if name[0] < 'a' {
		name = "run_" + name
	}
	return name[:min(len(name), maxIntentName)]
}

// intentOf describes a capability below the agent's base path.
func intentOf(s *agent.Service, base string) intent {
	d := s.Definition()
	in := intent{Name: intentName(d.Name), Description: describe(&d, s.Price), Method: http.MethodPost,
		Endpoint: base + "/capability/" + d.Name, Parameters: parametersOf(d.InputSchema)}
	if s.Price == nil || len(s.Price.Ways) == 0 {
		in.Payments = &intentPayments{} // free, or promised: x402 does not apply to it
		return in
	}
	if first := s.Price.Ways[0]; first.Symbol == "USDC" {
		in.Price = &price{Amount: json.RawMessage(s.Price.Amount), Currency: "USDC", Model: "per_call"}
	}
	in.Payments = &intentPayments{intentX402{Supported: true, Pricing: pricing(s.Price.Ways)}}
	if s.Price.Ways[0].Scheme == x402.SchemeUpto {
		in.Payments.X402.Description = "At most this is charged, less where the work turns out smaller."
	}
	return in
}

// describe is the description of an intent, long enough to choose by. A price that the manifest has no member for is
// told in words.
func describe(d *capability.Definition, p *agent.Price) string {
	text := strings.Join(strings.Fields(d.Description), " ")
	if len([]rune(text)) < minIntent {
		text = strings.TrimSpace("Runs the capability " + d.Name + ". " + text)
	}
	if p != nil && len(p.Ways) == 0 {
		text = agentText(text, maxDescription-100) + " (" + p.Amount + " " + p.Currency + " are promised for a call.)"
	}
	return agentText(text, maxDescription)
}

// pricing is what a call costs on each network. A manifest has one price for each: of several tokens the first counts.
func pricing(ways []agent.Way) (out []networkPrice) {
	for _, w := range ways {
		if !slices.ContainsFunc(out, func(known networkPrice) bool { return known.Network == w.Network }) {
			out = append(out, networkPrice{w.Network, json.RawMessage(w.Amount.Decimal(w.Decimals))})
		}
	}
	return out
}

// paymentsOf lists the tokens that any capability is paid in; nil where nothing is paid by x402.
func paymentsOf(services []*agent.Service, to common.Address) *payments {
	var list []network
	for _, s := range services {
		if s.Price == nil {
			continue
		}
		for _, w := range s.Price.Ways {
			n := network{w.Network, w.Symbol, w.Asset.Hex()}
			same := func(known network) bool { return known.Network == n.Network && known.Asset == n.Asset }
			if !slices.ContainsFunc(list, same) {
				list = append(list, n)
			}
		}
	}
	if len(list) == 0 {
		return nil
	}
	return &payments{x402Doc{Networks: list, Recipient: to.Hex()}}
}

// agentText is a text with at most so many characters, without those that readers refuse.
func agentText(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// schema is what is read of a JSON Schema.
type schema struct {
	Type        json.RawMessage            `json:"type"`
	Description string                     `json:"description"`
	Enum        []json.RawMessage          `json:"enum"`
	Default     json.RawMessage            `json:"default"`
	Const       json.RawMessage            `json:"const"`
	Properties  map[string]json.RawMessage `json:"properties"`
	Required    []string                   `json:"required"`
}

// parameter is one input of an intent.
type parameter struct {
	Type        string            `json:"type"`
	Required    bool              `json:"required"`
	Description string            `json:"description,omitempty"`
	Enum        []json.RawMessage `json:"enum,omitempty"`
	Default     json.RawMessage   `json:"default,omitempty"`
}

// parametersOf are the properties of an input schema. Whatever else the schema demands is checked when the capability
// is called: the manifest has no member for it.
func parametersOf(raw json.RawMessage) map[string]parameter {
	var root schema
	if json.Unmarshal(raw, &root) != nil { // such as true: any input
		return nil
	}
	out := make(map[string]parameter, len(root.Properties))
	for name, raw := range root.Properties {
		var s schema
		_ = json.Unmarshal(raw, &s) // true and false are schemas that say nothing
		p := parameter{Type: s.kind(), Required: slices.Contains(root.Required, name), Enum: s.Enum, Default: s.Default,
			Description: agentText(s.Description, maxParameterDescription)}
		if s.Const != nil {
			p.Enum = []json.RawMessage{s.Const}
		}
		out[name] = p
	}
	return out
}

// kind is the type of a parameter: the first one of the schema that a manifest can name, or else that of its first
// value, or else object.
func (s *schema) kind() string {
	var one string
	var several []string
	if json.Unmarshal(s.Type, &one) == nil {
		several = []string{one}
	} else {
		_ = json.Unmarshal(s.Type, &several) // nil where the schema names no type
	}
	for _, name := range several {
		if slices.Contains(agentjson.ParameterTypes(), name) {
			return name
		}
	}
	for _, value := range append(s.Enum, s.Const) {
		if name := agentjson.TypeOf(value); name != "" {
			return name
		}
	}
	return "object"
}
