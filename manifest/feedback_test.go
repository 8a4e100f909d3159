package manifest

import (
	"math/big"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

const nestedFeedback = `{
	"agentRegistry": "eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432",
	"agentId": 22,
	"clientAddress": "eip155:1:0x742d35cc6634c0532925a3b844bc9e7595f0beb7",
	"createdAt": "2025-09-23T12:00:00Z",
	"value": 100,
	"valueDecimals": 0,
	"tag1": "starred", "tag2": "x",
	"endpoint": "https://agent.example/GetPrice",
	"text": "quick",
	"mcp": {"tool": "price"},
	"a2a": {"skills": ["s"], "contextId": "c", "taskId": "t"},
	"oasf": {"skills": ["o"], "domains": ["d"]},
	"proofOfPayment": {
		"fromAddress": "0x742d35cc6634c0532925a3b844bc9e7595f0beb7", "toAddress": "0x742d35cc6634c0532925a3b844bc9e7595f0beb8",
		"chainId": "1", "txHash": "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
	},
	"more": 1
}`

const flatFeedback = `{
	"agentRegistry": "eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432",
	"agentId": 22,
	"clientAddress": "eip155:1:0x742d35cc6634c0532925a3b844bc9e7595f0beb7",
	"createdAt": "2025-09-23T12:00:00Z",
	"value": "100",
	"valueDecimals": "0",
	"tag1": "starred", "tag2": "x",
	"endpoint": "https://agent.example/GetPrice",
	"text": "quick",
	"mcpTool": "price",
	"a2aSkills": ["s"], "a2aContextId": "c", "a2aTaskId": "t",
	"oasfSkills": ["o"], "oasfDomains": ["d"],
	"proofOfPayment": {
		"fromAddress": "0x742d35cc6634c0532925a3b844bc9e7595f0beb7", "toAddress": "0x742d35cc6634c0532925a3b844bc9e7595f0beb8",
		"chainId": 1, "txHash": "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"
	},
	"more": 1
}`

func readFeedback() repute.FeedbackFile {
	none := uint8(0)
	return repute.FeedbackFile{
		TokenID: new(repute.TokenID).SetUint64(22), Registry: "eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432",
		Client: "eip155:1:0x742d35cc6634c0532925a3b844bc9e7595f0beb7", CreatedAt: "2025-09-23T12:00:00Z",
		Value: "100", Decimals: &none, Tag1: "starred", Tag2: "x", Endpoint: "https://agent.example/GetPrice",
		Text: "quick",
		MCP:  repute.FeedbackMCP{Tool: "price"},
		A2A:  repute.FeedbackA2A{Skills: []string{"s"}, ContextID: "c", TaskID: "t"},
		OASF: repute.FeedbackOASF{Skills: []string{"o"}, Domains: []string{"d"}},
		Payment: &repute.PaymentClaim{
			From: "0x742d35cc6634c0532925a3b844bc9e7595f0beb7", To: "0x742d35cc6634c0532925a3b844bc9e7595f0beb8",
			ChainID: "1", TxHash: "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470",
		},
		Extra: raw("more", "1"),
	}
}

func TestParseFeedback(t *testing.T) {
	f, problems := ParseFeedback([]byte(nestedFeedback))
	if len(problems) != 0 || !reflect.DeepEqual(f, readFeedback()) {
		t.Errorf("problems %v\n got %+v\nwant %+v", codesOf(problems), f, readFeedback())
	}
}

// What SDKs write flat means the same.
func TestParseFlatFeedback(t *testing.T) {
	f, problems := ParseFeedback([]byte(flatFeedback))
	if !reflect.DeepEqual(f, readFeedback()) {
		t.Errorf(" got %+v\nwant %+v", f, readFeedback())
	}
	want := []string{
		"IF559/a2aContextId", "IF559/a2aSkills", "IF559/a2aTaskId", "IF559/mcpTool", "IF559/oasfDomains",
		"IF559/oasfSkills",
	}
	if got := codesOf(problems); !slices.Equal(got, want) {
		t.Errorf("problems %v, want %v", got, want)
	}
}

// Drafts of the standard named skill, context, task, capability and name.
func TestParseDraftFeedback(t *testing.T) {
	f, _ := ParseFeedback([]byte(`{"agentId":1,"score":80,"skill":"s","context":"c","task":"t","capability":"prompts","name":"p","proof_of_payment":{"from":"a"}}`))
	want := repute.FeedbackFile{
		TokenID: new(repute.TokenID).SetUint64(1), Rating: "80",
		MCP:     repute.FeedbackMCP{Prompt: "p"},
		A2A:     repute.FeedbackA2A{Skills: []string{"s"}, ContextID: "c", TaskID: "t"},
		Payment: &repute.PaymentClaim{From: "a"},
	}
	if !reflect.DeepEqual(f, want) {
		t.Errorf(" got %+v\nwant %+v", f, want)
	}
}

// Each file is the standard one with one change.
func TestParseFeedbackProblems(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     []string
	}{
		{`"agentId": 22`, `"agentId": "22"`, []string{"IF540/agentId"}},
		{`"agentId": 22`, `"agentId": null`, []string{"WF541/agentId"}},
		{`eip155:1:0x8004`, `0x8004`, []string{"WF542/agentRegistry"}},
		{`"eip155:1:0x742d35cc`, `"0x742d35cc`, []string{"IF552/clientAddress"}},
		{`"eip155:1:0x742d35cc`, `"x`, []string{"WF551/clientAddress"}},
		{`"clientAddress"`, `"y"`, []string{"WF550/clientAddress"}},
		{`"2025-09-23T12:00:00Z"`, `"yesterday"`, []string{"WF554/createdAt"}},
		{`"2025-09-23T12:00:00Z"`, `""`, []string{"WF553/createdAt"}},
		{`"2025-09-23T12:00:00Z"`, `"2999-01-01T00:00:00Z"`, nil}, // a clock of its own: blocks tell when it was said
		{`"value": 100,`, ``, []string{"WF555/value"}},
		{`"value": 100,`, `"value": "a lot",`, []string{"WF556/value"}},
		{`"value": 100,`, `"value": 1e999999999,`, []string{"WF556/value"}},
		{`"value": 100,`, `"rating": 5,`, []string{"IF558/rating"}},
		{`"valueDecimals": 0`, `"valueDecimals": 19`, []string{"WF557/valueDecimals"}},
		{`{"tool": "price"}`, `"price"`, []string{"WF520/mcp"}},
		{`"chainId": "1", `, ``, []string{"WF560/proofOfPayment/chainId"}},
		{`0xc5d2460186f7`, `0x`, []string{"WF561/proofOfPayment/txHash"}},
		{`"chainId": "1"`, `"chainId": "eip155:8453"`, nil},
		{`"chainId": "1"`, `"chainId": "solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp"`, nil},
		{`"chainId": "1"`, `"chainId": "Solana mainnet"`, []string{"WF561/proofOfPayment/chainId"}},
		{`"more"`, `"tag1"`, []string{"WF510/tag1", "WF520/tag1"}},
		{`"text": "quick"`, `"text": "` + strings.Repeat("x", maxText+1) + `"`, []string{"WF515/text"}},
	} {
		doc := strings.Replace(nestedFeedback, c.from, c.to, 1)
		if doc == nestedFeedback {
			t.Fatalf("%q is not in the document", c.from)
		}
		if _, problems := ParseFeedback([]byte(doc)); !slices.Equal(codesOf(problems), c.want) {
			t.Errorf("%.60s → %.60s\n got %v\nwant %v", c.from, c.to, codesOf(problems), c.want)
		}
	}
}

func TestMatchFeedback(t *testing.T) {
	rating := repute.Feedback{
		Agent: repute.AgentID{ChainID: 1, Registry: common.HexToAddress("0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"),
			TokenID: *new(repute.TokenID).SetUint64(22)},
		Client: common.HexToAddress("0x742d35cc6634c0532925a3b844bc9e7595f0beb7"),
		Value:  big.NewInt(100), Tag1: "starred", Tag2: "x", Endpoint: "https://agent.example/GetPrice",
	}
	for _, c := range []struct {
		change func(f *repute.FeedbackFile, r *repute.Feedback)
		want   []string
	}{
		{func(*repute.FeedbackFile, *repute.Feedback) {}, nil},
		{func(f *repute.FeedbackFile, _ *repute.Feedback) { *f = repute.FeedbackFile{} }, nil},
		{func(_ *repute.FeedbackFile, r *repute.Feedback) { r.Client[0]++ }, []string{"EF570/clientAddress"}},
		{func(_ *repute.FeedbackFile, r *repute.Feedback) { r.Agent.TokenID.SetUint64(23) }, []string{"EF571/agentId"}},
		{func(_ *repute.FeedbackFile, r *repute.Feedback) { r.Agent.ChainID = 2 }, []string{"EF571/agentRegistry"}},
		{func(_ *repute.FeedbackFile, r *repute.Feedback) { r.Value = big.NewInt(99) }, []string{"EF572/value"}},
		{func(_ *repute.FeedbackFile, r *repute.Feedback) { r.Decimals = 1 }, []string{"EF572/value"}},
		{func(f *repute.FeedbackFile, _ *repute.Feedback) { f.Value = "1e2" }, nil},
		{func(f *repute.FeedbackFile, r *repute.Feedback) {
			f.Value, f.Decimals, r.Value, r.Decimals = "4.5", nil, big.NewInt(45), 1
		}, nil},
		{func(f *repute.FeedbackFile, r *repute.Feedback) {
			f.Decimals, r.Value, r.Decimals = nil, big.NewInt(100), 2
		}, nil},
		{func(_ *repute.FeedbackFile, r *repute.Feedback) { r.Tag1, r.Tag2 = "", "y" },
			[]string{"WF573/tag1", "WF573/tag2"}},
		{func(_ *repute.FeedbackFile, r *repute.Feedback) { r.Tag1, r.Partial = "", true }, nil},
		{func(_ *repute.FeedbackFile, r *repute.Feedback) { r.Endpoint = "" }, []string{"WF574/endpoint"}},
	} {
		f, r := readFeedback(), rating
		c.change(&f, &r)
		if got := codesOf(MatchFeedback(f, r)); !slices.Equal(got, c.want) {
			t.Errorf("%+v\n %+v\n got %v, want %v", f, r, got, c.want)
		}
	}
}
