package identity

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/query"
	"repute/trust"
)

// complete passes every check; each test takes one thing away.
func complete() query.TrustChecks {
	wallet := common.Address{7}
	return query.TrustChecks{
		Agent: repute.Agent{ID: repute.AgentID{ChainID: 8453}, Wallet: wallet,
			Document: repute.Document{Status: repute.DocumentOK, SHA256: [32]byte{1},
				Registration: &repute.Registration{Services: []repute.Service{
					{Name: "web", Endpoint: "https://a.example/"},
					{Name: "manifest", Endpoint: "https://a.example/.well-known/agent.json"}}}}},
		ParserVersion: 6,
		File: &query.CheckedFile{File: repute.File{Status: repute.DocumentOK, SHA256: [32]byte{2}},
			Body: []byte(`{"operatorWallet":"` + wallet.Hex() + `"}`)},
		Validating: true, Answer: &query.TrustAnswer{Response: 50},
	}
}

func TestOpenFi(t *testing.T) {
	own := func(c *query.TrustChecks, wallet string) {
		c.File = nil
		c.Agent.Document.Registration.Extra = map[string]json.RawMessage{"operatorWallet": json.RawMessage(`"` +
			wallet +
			`"`)}
	}
	for name, tc := range map[string]struct {
		change         func(*query.TrustChecks)
		score, granted string
		lacks          string
	}{
		"all":          {func(*query.TrustChecks) {}, "1.00", "1.00", ""},
		"own document": {func(c *query.TrustChecks) { own(c, c.Agent.Wallet.Hex()) }, "1.00", "1.00", ""},
		"disabled": {func(c *query.TrustChecks) { c.Validating, c.Answer = false, nil }, "0.85", "1.00",
			"validation"},
		"no answer":    {func(c *query.TrustChecks) { c.Answer = nil }, "0.85", "0.85", "validation"},
		"bad answer":   {func(c *query.TrustChecks) { c.Answer.Response = 49 }, "0.85", "0.85", "validation"},
		"other wallet": {func(c *query.TrustChecks) { c.Agent.Wallet[0]++ }, "0.80", "0.80", "operatorMatches"},
		"no wallet": {func(c *query.TrustChecks) { c.Agent.Wallet = common.Address{} }, "0.80", "0.80",
			"operatorMatches"},
		"other operator": {func(c *query.TrustChecks) { own(c, (common.Address{8}).Hex()) }, "0.80", "0.80",
			"operatorMatches"},
		"operator is odd": {func(c *query.TrustChecks) { own(c, "0x1") }, "0.80", "0.80", "operatorMatches"},
		"not read": {func(c *query.TrustChecks) { c.File = nil }, "0.60", "0.60",
			"agentJsonResolves operatorMatches"},
		"unreadable": {func(c *query.TrustChecks) { c.File.Body = nil }, "0.60", "0.60",
			"agentJsonResolves operatorMatches"},
		"no object": {func(c *query.TrustChecks) { c.File.Body = []byte("null") }, "0.60", "0.60",
			"agentJsonResolves operatorMatches"},
		"list of wallets": {func(c *query.TrustChecks) {
			c.File = nil
			c.Agent.Document.Registration.Services[0].Endpoint = "eip155:8453:" + c.Agent.Wallet.Hex()
		}, "0.80", "0.80", "agentJsonResolves"},
		"wallet of another chain": {func(c *query.TrustChecks) {
			c.File = nil
			c.Agent.Document.Registration.Services[0].Endpoint = "eip155:1:" + c.Agent.Wallet.Hex()
		}, "0.60", "0.60", "agentJsonResolves operatorMatches"},
		"nothing": {func(c *query.TrustChecks) {
			*c = query.TrustChecks{Agent: repute.Agent{Document: repute.Document{Status: repute.DocumentNone}}}
		}, "0.25", "0.40", "registrationResolves agentJsonResolves operatorMatches validation"},
	} {
		c := complete()
		tc.change(&c)
		s := openFi(c)
		var lacks []string
		for _, l := range s.Lacks {
			lacks = append(lacks, l.Part)
			if l.Reason == "" {
				t.Errorf("%s: %s lacks for no reason", name, l.Part)
			}
		}
		if got := strings.Join(lacks, " "); s.Overall.Decimal(2) != tc.score ||
			s.OverallGranted.Decimal(2) != tc.granted ||
			got != tc.lacks {
			t.Errorf("%s: %s, granted %s, lacks %q", name, s.Overall.Decimal(2), s.OverallGranted.Decimal(2), got)
		}
	}
	if read := openFi(complete()).Read; len(read) != 2 ||
		read[0] != (trust.ReadDocument{SHA256: common.Hash{1}, ParserVersion: 6}) ||
		read[1] != (trust.ReadDocument{SHA256: common.Hash{2}}) {
		t.Errorf("read: %v", read)
	}
}
