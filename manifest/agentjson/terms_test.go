package agentjson

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"repute"
)

// short describes a way in one line.
func (w Way) short() string {
	line := fmt.Sprintf("%s %s/%s to %s", w.Protocol, w.Network, w.Asset, w.Recipient)
	if w.Direct != "" {
		line += fmt.Sprintf(" %s %s", w.Direct, w.Currency)
	}
	if w.Ticket != "" {
		line += " ticket " + string(w.Ticket)
	}
	if len(w.Missing) > 0 {
		line += " missing " + strings.Join(w.Missing, ",")
	}
	return line
}

// ways lists the ways to pay for the first intent of a manifest with the payout address P.
func ways(t *testing.T, root, intent string) []string {
	t.Helper()
	doc := `{"version":"1.4","origin":"example.com","payout_address":"P"`
	if root != "" {
		doc += "," + root
	}
	doc += `,"intents":[{` + anIntent
	if intent != "" {
		doc += "," + intent
	}
	m, problems := Parse([]byte(doc+"}]}"), Options{})
	if repute.HasErrors(problems) && !strings.Contains(root+intent, "not-an-object") {
		t.Fatalf("%s: %+v", doc, problems)
	}
	var out []string
	for _, w := range m.Terms(0).Ways {
		out = append(out, w.short())
	}
	return out
}

// Every row of the resolution order (sections 4.8 and 4.9 of the specification, and the decisions of
// docs/reference/agent-json.md).
func TestTerms(t *testing.T) {
	t.Parallel()
	const (
		price   = `"price":{"amount":0.50,"currency":"USDC"}`
		usd     = `"price":{"amount":0.50,"currency":"USD"}`
		onBase  = `"price":{"amount":0.50,"currency":"USDC","network":"base"}`
		both    = `"payments":{"x402":{"networks":[` + goodBoth + `]}}`
		account = `"l402":{"lightning_address":"a@b"}`
	)
	for name, c := range map[string]struct {
		root, intent string
		want         []string
	}{
		"nothing declared": {"", "", nil},
		"price alone":      {"", usd, nil},

		"network_pricing, then the intent, then the price": {both,
			price + `,"payments":{"x402":{"direct_price":0.4,"ticket_price":0.3,` +
				`"network_pricing":[{"network":"ethereum","direct_price":0.6,"ticket_price":0.55}]}}`,
			[]string{"x402 base/USDC to P 0.4 USDC ticket 0.3", "x402 ethereum/USDC to P 0.6 USDC ticket 0.55"}},
		"network_pricing of one price": {both, price + `,"payments":{"x402":{"direct_price":0.4,"ticket_price":0.3,` +
			`"network_pricing":[{"network":"ethereum","ticket_price":0.35}]}}`,
			[]string{"x402 base/USDC to P 0.4 USDC ticket 0.3", "x402 ethereum/USDC to P 0.4 USDC ticket 0.35"}},
		"network_pricing alone": {both, price +
			`,"payments":{"x402":{"network_pricing":[{"network":"ethereum","direct_price":0.6}]}}`,
			[]string{"x402 base/USDC to P 0.5 USDC", "x402 ethereum/USDC to P 0.6 USDC"}},
		"network_pricing of no network": {both,
			price + `,"payments":{"x402":{"network_pricing":[{"network":"mars","direct_price":9}]}}`,
			[]string{"x402 base/USDC to P 0.5 USDC", "x402 ethereum/USDC to P 0.5 USDC"}},
		"the intent's ticket alone": {both, price + `,"payments":{"x402":{"ticket_price":0.3}}`,
			[]string{"x402 base/USDC to P 0.5 USDC ticket 0.3", "x402 ethereum/USDC to P 0.5 USDC ticket 0.3"}},
		"the price alone": {both, price, []string{"x402 base/USDC to P 0.5 USDC", "x402 ethereum/USDC to P 0.5 USDC"}},
		"a price in USD":  {both, usd, []string{"x402 base/USDC to P 0.5 USD", "x402 ethereum/USDC to P 0.5 USD"}},
		"no price":        {both, "", []string{"x402 base/USDC to P", "x402 ethereum/USDC to P"}},

		"payments before x402": {`"x402":{"supported":true,"network":"old","asset":"O"},` + both, "",
			[]string{"x402 base/USDC to P", "x402 ethereum/USDC to P"}},
		"intent payments before x402": {both, `"x402":{"direct_price":9},"payments":{"x402":{"direct_price":0.1}}`,
			[]string{"x402 base/USDC to P 0.1 USDC", "x402 ethereum/USDC to P 0.1 USDC"}},
		"legacy alone": {`"x402":{"supported":true,"network":"base","asset":"USDC","recipient":"R"}`,
			`"x402":{"direct_price":0.2}`,
			[]string{"x402 base/USDC to R 0.2 USDC"}},
		"legacy beside other protocols": {`"x402":{"supported":true,"network":"base","asset":"USDC"},"payments":{` +
			account + `}`, "",
			[]string{"l402 / to P", "x402 base/USDC to P"}},
		"legacy root, intent payments": {`"x402":{"supported":true,"network":"base","asset":"USDC"}`,
			`"payments":{"x402":{"direct_price":0.2}}`,
			[]string{"x402 base/USDC to P 0.2 USDC"}},
		"networks before flat": {`"payments":{"x402":{"network":"flat","asset":"F","networks":[` + goodBase + `]}}`, "",
			[]string{"x402 base/USDC to P"}},

		"not supported": {`"payments":{"x402":{"supported":false,"network":"base","asset":"USDC"}}`,
			price, nil},
		"supported by the intent": {`"payments":{"x402":{"supported":false,"network":"base","asset":"USDC"}}`,
			price + `,"payments":{"x402":{"supported":true}}`, []string{"x402 base/USDC to P 0.5 USDC"}},
		"not supported by the intent": {both, price + `,"payments":{"x402":{"supported":false}}`, nil},
		"legacy says that it is not":  {`"x402":{"supported":false,"network":"base","asset":"USDC"}`, "", nil},
		"supported, but nowhere":      {`"payments":{"x402":{}}`, "", []string{"x402 / to P missing network,asset"}},
		"supported, price's networks": {`"payments":{"x402":{}}`, onBase,
			[]string{"x402 base/USDC to P 0.5 USDC", "transfer base/USDC to P 0.5 USDC"}},
		"by the intent alone": {"", `"x402":{"direct_price":0.2}`,
			[]string{"x402 / to P 0.2  missing network,asset"}},
		"by the intent and its price": {"", onBase + `,"payments":{"x402":{"direct_price":0.2}}`,
			[]string{"x402 base/USDC to P 0.2 USDC", "transfer base/USDC to P 0.5 USDC"}},
		"only the price's networks": {both, onBase,
			[]string{"x402 base/USDC to P 0.5 USDC", "transfer base/USDC to P 0.5 USDC"}},
		"none of the price's networks": {both, `"price":{"amount":1,"currency":"USDC","network":"mars"}`,
			[]string{"transfer mars/USDC to P 1 USDC"}},

		"recipient of the protocol": {`"payments":{"x402":{"network":"base","asset":"USDC","recipient":"R"},"mpp":{"provider":"s"}}`, "",
			[]string{"x402 base/USDC to R", "mpp / to P"}},
		"recipient of legacy is not that of payments": {`"x402":{"supported":true,"recipient":"L"},"payments":{"x402":{"network":"base","asset":"USDC"}}`, "",
			[]string{"x402 base/USDC to P"}},
		"recipient of the intent": {`"payments":{"mpp":{"provider":"s","recipient":"R"}}`,
			`"payments":{"mpp":{"recipient":"I"}}`, []string{"mpp / to I"}},

		"order as written": {`"payments":{"mpp":{},"future":{"a":1},"x402":{"network":"base","asset":"USDC"},` +
			account + `}`, usd,
			[]string{"mpp / to P 0.5 USD", "future / to P", "x402 base/USDC to P 0.5 USD", "l402 / to P 0.5 USD"}},
		"protocols of the intent last": {`"payments":{"mpp":{}}`, `"payments":{` + account + `,"mpp":{"provider":"s"}}`,
			[]string{"mpp / to P", "l402 / to P"}},
		"what is no object is no way": {`"payments":{"x402":"not-an-object","l402":"not-an-object"}`, price, nil},
		"transfers": {"", `"price":{"amount":2,"currency":"USDC","network":["base","arbitrum"]}`,
			[]string{"transfer base/USDC to P 2 USDC", "transfer arbitrum/USDC to P 2 USDC"}},
		"no transfers of USD": {"", `"price":{"amount":2,"currency":"USD","network":["base"]}`, nil},
	} {
		if got := ways(t, c.root, c.intent); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// Each value of a way says which member decided, and accounts of protocols are merged.
func TestTermsSources(t *testing.T) {
	t.Parallel()
	doc := base(`,"payments":{"x402":{"networks":[{"network":"base","asset":"USDC","contract":"C","facilitator":"https://f.example"}],"recipient":"R"},
		"l402":{"version":"0","lightning_address":"a@b","lnurl":"l"},"later":{"a":1}},
		"intents":[{"name":"a","description":"A description."},{"name":"b","description":"A description.",
		"price":{"amount":0.5,"currency":"USDC","model":"per_unit","unit_param":"n","free_tier":7},"parameters":{"n":{"type":"integer"}},
		"payments":{"x402":{"ticket_price":0.1,"network_pricing":[{"network":"x"},{"network":"base","direct_price":0.2}]},
		"l402":{"lightning_address":"i@b"},"later":{"a":2}}}]`)
	m, problems := Parse(doc, Options{})
	if repute.HasErrors(problems) {
		t.Fatal(problems)
	}
	terms := m.Terms(1)
	if len(terms.Ways) != 3 {
		t.Fatalf("%+v", terms.Ways)
	}
	x402, l402, later := terms.Ways[0], terms.Ways[1], terms.Ways[2]
	got := fmt.Sprint(x402.DirectFrom, " ", x402.TicketFrom, " ", x402.RecipientFrom, " ", x402.Contract, " ",
		x402.Facilitator, " ",
		x402.Unit, " ", x402.Counts, " ", x402.FreeTier, " ", l402.DirectFrom, " ", l402.RecipientFrom, " ",
		l402.Account.LightningAddress, " ",
		l402.Account.LNURL, " ", l402.Account.Version, " ", later.Known, " ", string(later.Other), " ", later.Direct)
	const want = "/intents/1/payments/x402/network_pricing/1/direct_price /intents/1/payments/x402/ticket_price " +
		"/payments/x402/recipient C https://f.example per_unit n 7 /intents/1/price/amount /payout_address i@b l 0 false {\"a\":2} "
	if got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, i := range []int{-1, 2} {
		if terms := m.Terms(i); terms.Price != nil || terms.Ways != nil {
			t.Errorf("terms of no intent: %+v", terms)
		}
	}
}

// Bounties and incentives of an intent replace those of the root as a whole, splits included.
func TestRewards(t *testing.T) {
	t.Parallel()
	doc := base(`,"bounty":{"type":"cpa","rate":2,"currency":"USDC","splits":{"orchestrator":0.6,"platform":0.4}},
		"incentive":{"type":"cpa","rate":0.5,"currency":"USDC"},"intents":[{"name":"a","description":"A description."},
		{"name":"b","description":"A description.","bounty":{"type":"cpa","rate":12.00,"currency":"USDC"},
		"incentive":{"type":"cpa","rate":0,"currency":"USDC"}}]`)
	m, problems := Parse(doc, Options{Profile: Strict})
	if repute.HasErrors(problems) {
		t.Fatal(problems)
	}
	first, second := m.Terms(0), m.Terms(1)
	if first.Bounty.Rate != "2" || first.Bounty.Splits.Platform != "0.4" || first.Incentive.Rate != "0.5" {
		t.Errorf("%+v", first)
	}
	if second.Bounty.Rate != "12" || second.Bounty.Splits != nil || second.Incentive.Rate != "0" {
		t.Errorf("%+v", second)
	}
	for splits, ok := range map[string]bool{
		`{"orchestrator":0.7,"platform":0.2,"referrer":0.1}`: true,
		`{"orchestrator":1}`: true,
		`{"orchestrator":0.333,"platform":0.333,"referrer":0.333}`: true, // within upstream's tolerance
		`{"orchestrator":0.333,"platform":0.333}`:                  false,
		`{"orchestrator":1.5}`:                                     false,
		`{"orchestrator":-1,"platform":2}`:                         false,
		`{}`:                                                       false,
	} {
		m, problems := Parse(base(`,`+rewarded(`"type":"cpa","rate":1,"currency":"USDC","splits":`+splits)), Options{})
		if repute.HasErrors(problems) == ok || (m.Bounty.Splits != nil) != ok {
			t.Errorf("%s: %v", splits, codes(problems))
		}
	}
}
