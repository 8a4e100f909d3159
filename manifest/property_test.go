package manifest

import (
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
)

// written is a registration file being written in spellings drawn at random.
type written struct {
	t *rapid.T
}

func (w written) pick(label string, spellings ...string) string {
	return rapid.SampledFrom(spellings).Draw(w.t, label)
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string always marshals
	return string(b)
}

// service writes one service in any shape.
func (w written) service(s repute.Service) string {
	names := strings.Split(w.pick("service", "name endpoint", "name url", "name uri", "type url", "kind url",
		"id serviceEndpoint"), " ")
	endpoint := quote(s.Endpoint)
	if rapid.Bool().Draw(w.t, "wrapped") {
		endpoint = `[` + endpoint + `]`
	}
	return fmt.Sprintf(`{%q: %s, %q: %s}`, names[0], quote(s.Name), names[1], endpoint)
}

// link writes one entry of registrations in any form.
func (w written) link(id repute.AgentID) string {
	token := id.TokenID.Dec()
	if rapid.Bool().Draw(w.t, "text id") {
		token = quote(token)
	}
	address := quote(strings.ToLower(id.Registry.Hex()))
	switch w.pick("link", "standard", "erc8004", "OpenFi", "contract") {
	case "erc8004":
		return fmt.Sprintf(`{"agentId": %s, "agentRegistry": "erc8004:%d:%s"}`, token, id.ChainID, id.Registry.Hex())
	case "OpenFi":
		return fmt.Sprintf(`{"agentId": %s, "agentRegistry": %s, "chainId": %d}`, token, address, id.ChainID)
	case "contract":
		return fmt.Sprintf(`{"tokenId": %s, "contract": %s, "chainId": "%d"}`, token, address, id.ChainID)
	}
	return fmt.Sprintf(`{"agentId": %s, "agentRegistry": "eip155:%d:%s"}`, token, id.ChainID, id.Registry.Hex())
}

// Every spelling seen in the wild means what the standard's means, whatever the values.
func TestSpellingsMeanTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := written{t}
		services := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) repute.Service {
			return repute.Service{
				Name:     rapid.StringMatching(`[a-zA-Z0-9 "\\<é世]{1,12}`).Draw(t, "name"),
				Endpoint: "https://" + rapid.StringMatching(`[a-z]{1,8}\.example/[a-z"\\]{0,8}`).Draw(t, "endpoint"),
			}
		}), 1, 4).Draw(t, "services")
		agent := repute.AgentID{
			ChainID:  uint64(rapid.Int64Min(1).Draw(t, "chain")),
			Registry: common.BytesToAddress(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "registry")),
			TokenID:  *new(repute.TokenID).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, "token")),
		}
		x402 := rapid.Bool().Draw(t, "x402")
		var list []string
		for _, s := range services {
			list = append(list, w.service(s))
		}
		doc := fmt.Sprintf(`{"name": "n", %q: [%s], "registrations": [%s], %q: %s, %q: %s}`,
			w.pick("services", "services", "endpoints"), strings.Join(list, ", "), w.link(agent),
			w.pick("x402", "x402Support", "x402support", "x402Enabled", "x402"),
			strings.ReplaceAll(w.pick("flag", "B", `{"enabled": B}`, `{"supported": B}`, `"B"`), "B", fmt.Sprint(x402)),
			w.pick("trust", "supportedTrust", "supportedTrusts"),
			w.pick("trust value", `["reputation"]`, `"reputation"`, `[{"type": "reputation"}]`,
				`[{"protocol": "reputation", "version": "1.0"}]`))

		reg, problems := Parse([]byte(doc))
		if repute.HasErrors(problems) || reg.X402 == nil || *reg.X402 != x402 ||
			!reflect.DeepEqual(reg.SupportedTrust, []string{"reputation"}) {
			t.Fatalf("%s\nread as %+v", doc, reg)
		}
		if Links(reg, agent) != repute.LinkLinked {
			t.Fatalf("%s\nis %s", doc, Links(reg, agent))
		}
		for i, s := range services {
			if got := reg.Services[i]; got.Name != s.Name || got.Endpoint != s.Endpoint {
				t.Fatalf("%s\nread as %+v, want %+v", doc, got, s)
			}
		}
		agent.ChainID ^= 1
		if Links(reg, agent) != repute.LinkOther {
			t.Fatalf("%s\nis %s for another chain", doc, Links(reg, agent))
		}
	})
}

// A file that says what was sent matches, in whichever of the ways numbers are written.
func TestWrittenValuesMatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.Int64().Draw(t, "value")
		decimals := uint8(rapid.IntRange(0, repute.MaxDecimals).Draw(t, "decimals"))
		rating := repute.Feedback{Value: big.NewInt(value), Decimals: decimals}
		amount := repute.Amount{Value: rating.Value, Decimals: decimals}
		raw := fmt.Sprintf(`{"agentId":0,"value":%d,"valueDecimals":%d}`, value, decimals)
		for _, doc := range []string{raw, strings.Replace(raw, fmt.Sprintf(`:%d,`, value),
			fmt.Sprintf(`:"%d",`, value), 1),
			fmt.Sprintf(`{"agentId":0,"value":%s}`, amount.Decimal()),
			fmt.Sprintf(`{"agentId":0,"value":%s,"valueDecimals":%d}`, amount.Decimal(), decimals)} {
			file, _ := ParseFeedback([]byte(doc))
			if problems := MatchFeedback(file, rating); len(problems) != 0 {
				t.Fatalf("%s against %s: %v", doc, amount.Decimal(), problems)
			}
		}
		other := repute.Feedback{Value: big.NewInt(value ^ 1), Decimals: decimals}
		file, _ := ParseFeedback([]byte(raw))
		if problems := MatchFeedback(file, other); decimals == 0 && len(problems) != 1 {
			t.Fatalf("%s against another value: %v", raw, problems)
		}
	})
}
