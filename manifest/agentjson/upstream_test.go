package agentjson

import (
	"fmt"
	"slices"
	"testing"
)

// upstreamCase is a case of upstream's test suite: a manifest, and what upstream's validator says of it.
type upstreamCase struct {
	name    string
	version string
	members string // beside version, origin and payout_address
	valid   bool   // by upstream's validator
	code    string // that this package gives in the lenient profile, without its severity; "" for none that matters
	absent  string // a code that must not be given
	tier    Tier   // 0 where the case does not say
	differs string // why the strict profile says otherwise; "" where it agrees
}

const (
	anIntent  = `"name":"analyze","description":"Analyze a document."`
	zeroPay   = `"payout_address":"0x0000000000000000000000000000000000000000"`
	goodBase  = `{"network":"base","asset":"USDC"}`
	goodBoth  = goodBase + `,{"network":"ethereum","asset":"USDC"}`
	goodX402  = `"x402":{"supported":true,"network":"base","asset":"USDC"}`
	ethereum  = `"network_pricing":[{"network":"ethereum","direct_price":0.55}]`
	aKeyOf32  = `"public_key":"dGhpcyBpcyBhIHBsYWNlaG9sZGVyIHB1YmxpYyBrZXk"`
	aLatency  = `{"type":"latency_bound","constraint":"p99 < 500ms","verifiable":true}`
	aSchema10 = `"schema_version":"1.0"`
)

func intents(members string) string    { return `"intents":[{` + anIntent + `,` + members + `}]` }
func priced(members string) string     { return intents(`"price":{` + members + `}`) }
func rewarded(members string) string   { return `"bounty":{` + members + `}` }
func rootX402(members string) string   { return `"x402":{` + members + `}` }
func intentX402(members string) string { return intents(`"x402":{` + members + `}`) }
func paid(members string) string       { return `"payments":{` + members + `}` }
func paidX402(members string) string   { return paid(`"x402":{` + members + `}`) }
func committed(members string) string  { return `"commitments":{` + members + `}` }
func entries(list string) string       { return committed(aSchema10 + `,"entries":[` + list + `]`) }

func upstreamRequired() []upstreamCase {
	return []upstreamCase{
		{name: "minimal", version: "1.0", valid: true, tier: TierMinimal},
		{name: "version 1.1", version: "1.1", valid: true},
		{name: "version 1.2", version: "1.2", valid: true},
		{name: "version 1.3", version: "1.3", valid: true},
		{name: "version 2.0", version: "2.0", code: "J610"},
		{name: "extension members", version: "1.0", valid: true, code: "J604", absent: "J603",
			members: `"x-arcede-reliability":0.99,"x_custom_metadata":"test",` + intents(`"x-vendor-strict":true`),
			differs: "the schema does not allow x_"},
		{name: "unknown member", version: "1.0", valid: true, code: "J603",
			members: `"unknown_field":true,"intents":[{"name":"test_intent","description":"Test intent"}]`,
			differs: "the schema does not allow unknown members"},
		{name: "extensions", version: "1.0", valid: true, absent: "J603",
			members: `"extensions":{"air":{"score":1}},` + intents(`"extensions":{"air":{"custom":true}}`)},
		{name: "extensions as array", version: "1.0", members: `"extensions":["invalid_array"]`, code: "J520"},
		{name: "intent extensions as string", version: "1.0", members: intents(`"extensions":"invalid"`), code: "J520"},
		{name: "tier 1", version: "1.0", valid: true, tier: TierMinimal},
		{name: "tier 2", version: "1.0", valid: true, members: intents(`"x-a":1`), tier: TierStructured},
		{name: "tier 3", version: "1.0", valid: true, tier: TierIdentified, absent: "J660",
			members: `"identity":{"did":"did:web:example.com"},` + intents(`"x-a":1`)},
	}
}

func upstreamIntents() []upstreamCase {
	return []upstreamCase{
		{name: "intents", version: "1.0", valid: true, tier: TierStructured,
			members: `"intents":[{"name":"search_products","description":"Search the catalog by keyword, category, or brand."}]`},
		{name: "no name", version: "1.0", members: `"intents":[{"description":"A description for this intent."}]`,
			code: "J602"},
		{name: "no snake_case", version: "1.0", code: "J606",
			members: `"intents":[{"name":"SearchProducts","description":"Search the product catalog."}]`},
		{name: "duplicate names", version: "1.0", code: "J620",
			members: `"intents":[{"name":"search","description":"Search the catalog by keyword."},` +
				`{"name":"search","description":"Another search description here."}]`},
		{name: "endpoint and method", version: "1.0", valid: true, absent: "J623",
			members: intents(`"endpoint":"/api/checkout/tip","method":"POST"`)},
		{name: "method PATCH", version: "1.0", members: intents(`"endpoint":"/api/thing","method":"PATCH"`),
			code: "J605"},
		// The prose of the specification says that runtimes may default to POST; the test of this package does too.
		{name: "endpoint without method", version: "1.0", valid: true, members: intents(`"endpoint":"/api/thing"`),
			code: "J621", differs: "schema and validator require method"},
		{name: "method without endpoint", version: "1.0", valid: true, members: intents(`"method":"POST"`),
			code: "J622"},
		{name: "bounty", version: "1.0", valid: true, members: rewarded(`"type":"cpa","rate":2.0,"currency":"USDC"`)},
		{name: "bounty in ETH", version: "1.0", members: rewarded(`"type":"cpa","rate":2.0,"currency":"ETH"`),
			code: "J605"},
		{name: "splits off 1", version: "1.0", code: "J640",
			members: rewarded(`"type":"cpa","rate":2.0,"currency":"USDC",` +
				`"splits":{"orchestrator":0.5,"platform":0.1,"referrer":0.1}`)},
		{name: "incentive", version: "1.0", valid: true,
			members: `"incentive":{"type":"cpa","rate":0.25,"currency":"USDC"}`},
		{name: "incentive in ETH", version: "1.0", members: `"incentive":{"type":"cpa","rate":0.25,"currency":"ETH"}`,
			code: "J605"},
		{name: "intent incentive", version: "1.0", valid: true,
			members: intents(`"incentive":{"type":"cpa","rate":0.10,"currency":"USDC"}`)},
		{name: "price", version: "1.0", valid: true,
			members: priced(`"amount":0.50,"currency":"USD","model":"per_call"`)},
		{name: "price in EUR", version: "1.0", members: priced(`"amount":0.50,"currency":"EUR","model":"per_call"`),
			code: "J605"},
		{name: "per_unit without unit_param", version: "1.0", code: "J630",
			members: priced(`"amount":0.50,"currency":"USD","model":"per_unit"`)},
		{name: "network", version: "1.1", valid: true,
			members: priced(`"amount":0.01,"currency":"USDC","network":"base"`)},
		{name: "networks", version: "1.1", valid: true,
			members: priced(`"amount":0.01,"currency":"USDC","network":["base","arbitrum"]`)},
		{name: "network as number", version: "1.1", members: priced(`"amount":0.01,"currency":"USDC","network":123`),
			code: "J520"},
		{name: "no networks", version: "1.1", members: priced(`"amount":0.01,"currency":"USDC","network":[]`),
			code: "J609"},
		{name: "network twice", version: "1.1", valid: true, code: "J632",
			members: priced(`"amount":0.01,"currency":"USDC","network":["base","base"]`)},
		{name: "network of fiat", version: "1.1", valid: true, code: "J633",
			members: priced(`"amount":0.50,"currency":"USD","network":"base"`)},
	}
}

func upstreamX402() []upstreamCase {
	return []upstreamCase{
		{name: "flat", version: "1.1", valid: true, absent: "J651",
			members: rootX402(`"supported":true,"network":"base","asset":"USDC",` +
				`"contract":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","facilitator":"https://x402.org/facilitator"`)},
		{name: "networks", version: "1.1", valid: true,
			members: rootX402(`"supported":true,"networks":[` + goodBoth + `]`)},
		{name: "no supported", version: "1.1", members: rootX402(`"network":"base","asset":"USDC"`), code: "J602"},
		{name: "supported as text", version: "1.1",
			members: rootX402(`"supported":"yes","network":"base","asset":"USDC"`),
			code:    "J520"},
		{name: "network without name", version: "1.1",
			members: rootX402(`"supported":true,"networks":[{"asset":"USDC"}]`),
			code:    "J602"},
		{name: "network without asset", version: "1.1",
			members: rootX402(`"supported":true,"networks":[{"network":"base"}]`),
			code:    "J602"},
		{name: "recipient", version: "1.1", valid: true,
			members: rootX402(`"supported":true,"network":"base","asset":"USDC",` +
				`"recipient":"0x1111111111111111111111111111111111111111"`)},
		{name: "x402 as text", version: "1.1", members: `"x402":"not-an-object"`, code: "J520"},
		{name: "no networks", version: "1.1", members: rootX402(`"supported":true,"networks":[]`), code: "J609"},
		{name: "not supported", version: "1.1", valid: true, members: rootX402(`"supported":false`), absent: "J651"},
		{name: "network twice", version: "1.1", valid: true, code: "J632",
			members: rootX402(`"supported":true,"networks":[` + goodBase + `,` + goodBase + `]`)},
		{name: "supported without network", version: "1.1", valid: true, members: rootX402(`"supported":true`),
			code: "J651"},
		{name: "intent x402 as text", version: "1.1", members: intents(`"x402":"not-an-object"`), code: "J520"},
		{name: "intent x402", version: "1.1", valid: true,
			members: intentX402(`"direct_price":0.50,"ticket_price":0.40,"description":"Pay $0.50 or $0.40 with a ticket."`)},
		{name: "negative direct_price", version: "1.1", members: intentX402(`"direct_price":-1`), code: "J608"},
		{name: "negative ticket_price", version: "1.1", members: intentX402(`"ticket_price":-1`), code: "J608"},
		{name: "dear ticket", version: "1.1", valid: true,
			members: intentX402(`"direct_price":0.50,"ticket_price":0.60`),
			code:    "J653"},
		{name: "network_pricing", version: "1.1", valid: true, absent: "J652",
			members: intentX402(`"direct_price":0.50,` +
				`"network_pricing":[{"network":"ethereum","direct_price":0.55,"ticket_price":0.45}]`)},
		{name: "pricing without network", version: "1.1", code: "J602",
			members: intentX402(`"direct_price":0.50,"network_pricing":[{"direct_price":0.55}]`)},
		{name: "pricing twice", version: "1.1", valid: true, code: "J632", members: intentX402(`"direct_price":0.50,` +
			`"network_pricing":[{"network":"ethereum","direct_price":0.55},{"network":"ethereum","direct_price":0.60}]`)},
		{name: "pricing of no network", version: "1.1", valid: true, code: "J652",
			members: rootX402(`"supported":true,"networks":[`+goodBase+`]`) + `,` +
				intentX402(`"direct_price":0.50,`+ethereum)},
		{name: "pricing of a network", version: "1.1", valid: true, absent: "J652",
			members: rootX402(`"supported":true,"networks":[`+goodBoth+`]`) + `,` +
				intentX402(`"direct_price":0.50,`+ethereum)},
		{name: "pricing and flat", version: "1.1", valid: true, code: "J652", members: goodX402 + `,` +
			intentX402(`"direct_price":0.50,"network_pricing":[{"network":"arbitrum","direct_price":0.55}]`)},
		{name: "dear ticket of a network", version: "1.1", valid: true, code: "J653",
			members: intentX402(`"direct_price":0.50,` +
				`"ticket_price":0.40,"network_pricing":[{"network":"ethereum","direct_price":0.50,"ticket_price":0.60}]`)},
	}
}

func upstreamPayments() []upstreamCase {
	return []upstreamCase{
		{name: "networks", version: "1.3", valid: true, members: paidX402(`"networks":[` + goodBoth + `]`)},
		{name: "flat", version: "1.3", valid: true, members: paidX402(`"network":"base","asset":"USDC",` +
			`"contract":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"`)},
		{name: "without supported", version: "1.3", valid: true, members: paidX402(`"networks":[` + goodBase + `]`),
			absent: "J602"},
		{name: "not supported", version: "1.3", valid: true, members: paidX402(`"supported":false`), absent: "J651"},
		{name: "two protocols", version: "1.3", valid: true,
			members: paid(`"x402":{"networks":[` + goodBase + `]},"l402":{"lightning_address":"api@example.com"}`)},
		{name: "three protocols", version: "1.3", valid: true, members: paid(`"x402":{"networks":[` + goodBase + `]},` +
			`"l402":{"lightning_address":"api@example.com"},"mpp":{"stripe_account":"acct_123","provider":"stripe"}`)},
		{name: "payments as text", version: "1.3", members: `"payments":"not-an-object"`, code: "J520"},
		{name: "x402 as boolean", version: "1.3", members: paid(`"x402":true`), code: "J520"},
		{name: "recipient", version: "1.3", valid: true, members: paidX402(`"networks":[` + goodBase + `],` +
			`"recipient":"0x1111111111111111111111111111111111111111"`)},
		{name: "unknown protocol", version: "1.3", valid: true, code: "J655",
			members: paid(`"x402":{"networks":[` + goodBase +
				`]},"some_future_protocol":{"endpoint":"https://future.com/pay"}`)},
		{name: "both x402", version: "1.3", valid: true, code: "J650",
			members: goodX402 + `,` + paidX402(`"networks":[`+goodBase+`]`)},
		{name: "l402", version: "1.3", valid: true, members: paid(`"l402":{"lightning_address":"api@example.com"}`)},
		{name: "l402 lnurl", version: "1.3", valid: true,
			members: paid(`"l402":{"lnurl":"lnurl1dp68gurn8ghj7ampd3ex2mrp..."}`)},
		{name: "l402 as text", version: "1.3", members: paid(`"l402":"not-an-object"`), code: "J520"},
		{name: "l402 recipient", version: "1.3", valid: true, members: paid(`"l402":{"recipient":"some_address"}`),
			absent: "J615"},
		{name: "l402 version", version: "1.3", valid: true,
			members: paid(`"l402":{"version":"0","lightning_address":"api@example.com"}`)},
		{name: "l402 address as number", version: "1.3", members: paid(`"l402":{"lightning_address":123}`),
			code: "J520"},
		{name: "mpp", version: "1.3", valid: true,
			members: paid(`"mpp":{"stripe_account":"acct_123","provider":"stripe"}`)},
		{name: "mpp as text", version: "1.3", members: paid(`"mpp":"not-an-object"`), code: "J520"},
		{name: "mpp account as number", version: "1.3", members: paid(`"mpp":{"stripe_account":123}`), code: "J520"},
		{name: "intent payments", version: "1.3", valid: true,
			members: intents(paidX402(`"direct_price":0.50,"ticket_price":0.40,"description":"Pay."`))},
		{name: "intent payments as text", version: "1.3", members: intents(`"payments":"not-an-object"`), code: "J520"},
		{name: "intent negative price", version: "1.3", members: intents(paidX402(`"direct_price":-1`)), code: "J608"},
		{name: "intent both x402", version: "1.3", valid: true, code: "J650",
			members: intents(`"x402":{"direct_price":0.50},` + paidX402(`"direct_price":0.50`))},
		{name: "recipient as number", version: "1.3", members: paidX402(`"supported":false,"recipient":123`),
			code: "J520"},
		{name: "payments as array", version: "1.3", members: `"payments":[]`, code: "J520"},
		{name: "intent l402 as text", version: "1.3", members: intents(paid(`"l402":"not-an-object"`)), code: "J520"},
		{name: "intent mpp as boolean", version: "1.3", members: intents(paid(`"mpp":true`)), code: "J520"},
		{name: "pricing of no network", version: "1.3", valid: true, code: "J652",
			members: paidX402(`"networks":[`+goodBase+`]`) + `,` + intents(paidX402(`"direct_price":0.50,`+ethereum))},
		{name: "pricing of a network", version: "1.3", valid: true, absent: "J652",
			members: paidX402(`"networks":[`+goodBoth+`]`) + `,` + intents(paidX402(`"direct_price":0.50,`+ethereum))},
	}
}

func upstreamTrust() []upstreamCase {
	const notASignature = "a text that is no signature is an error to publishers"
	return []upstreamCase{
		{name: "issuer", version: "1.4", valid: true, tier: TierIdentified, absent: "J606",
			members: `"identity":{"did":"did:web:example.com",` + aKeyOf32 + `,"oatr_issuer_id":"example-runtime"},` +
				intents(`"x-a":1`)},
		{name: "issuer in capitals", version: "1.4", members: `"identity":{"oatr_issuer_id":"MyRuntime"}`,
			code: "J606"},
		{name: "issuer of one letter", version: "1.4", members: `"identity":{"oatr_issuer_id":"a"}`, code: "J606"},
		{name: "commitments", version: "1.4", valid: true,
			members: entries(aLatency + `,{"type":"data_residency","constraint":"EU-only processing"}`)},
		{name: "ref", version: "1.4", valid: true, absent: "J671", members: entries(`{"type":"regulatory_compliance",` +
			`"constraint":"SOC 2","verifiable":true,"ref":"https://example.com/compliance/soc2-2026.json"}`)},
		{name: "ref that is no URL", version: "1.4", code: "J671",
			members: entries(`{"type":"compliance","constraint":"SOC 2","ref":"not-a-url"}`)},
		{name: "no schema_version", version: "1.4",
			members: committed(`"entries":[{"type":"test","constraint":"test"}]`),
			code:    "J602"},
		{name: "entry without type", version: "1.4", members: entries(`{"constraint":"p99 < 500ms"}`), code: "J602"},
		{name: "signature without key", version: "1.4", valid: true, code: "J672", differs: notASignature,
			members: committed(aSchema10 +
				`,"entries":[{"type":"test","constraint":"test"}],"signature":"some-base64url-signature"`)},
		{name: "1.3 without new members", version: "1.3", valid: true, members: intents(`"x-a":1`)},
		{name: "all of 1.4", version: "1.4", valid: true, tier: TierSigned, code: "J673", differs: notASignature,
			members: `"display_name":"Example API","identity":{"did":"did:web:example.com",` + aKeyOf32 +
				`,"oatr_issuer_id":"example-api"},` +
				intents(`"parameters":{"url":{"type":"string","required":true,"description":"The URL."}}`) + `,` +
				committed(aSchema10+`,"entries":[`+aLatency+
					`],"signature":"base64url-ed25519-signature-over-jcs-canonicalized-entries"`) +
				`,` + rewarded(`"type":"cpa","rate":0.05,"currency":"USDC"`)},
	}
}

// Upstream's validator and this package agree on upstream's cases in the lenient profile, but for the endpoint without
// a method. The strict profile rejects what upstream's schema rejects as well.
func TestUpstreamCases(t *testing.T) {
	t.Parallel()
	n := 0
	for group, cases := range map[string][]upstreamCase{"required": upstreamRequired(), "intents": upstreamIntents(),
		"x402": upstreamX402(), "payments": upstreamPayments(), "trust": upstreamTrust()} {
		for _, c := range cases {
			n++
			t.Run(group+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				c.check(t)
			})
		}
	}
	// Beside these, upstream tests its 13 examples, its schema file, an empty object, a manifest without origin and one
	// with an empty payout_address: see TestUpstreamExamples, TestSchemaAgrees and TestDocuments.
	if n != 101 {
		t.Errorf("%d cases", n)
	}
}

func (c upstreamCase) check(t *testing.T) {
	doc := fmt.Sprintf(`{"version":%q,"origin":"example.com",%s`, c.version, zeroPay)
	if c.members != "" {
		doc += "," + c.members
	}
	m, problems := Parse([]byte(doc+"}"), Options{})
	if got := len(errorsOf(problems)) == 0; got != c.valid {
		t.Errorf("valid: %v, want %v: %+v", got, c.valid, problems)
	}
	given := func(code string) bool {
		return slices.ContainsFunc(codes(problems), func(given string) bool { return given[1:] == code })
	}
	if c.code != "" && !given(c.code) || c.absent != "" && given(c.absent) {
		t.Errorf("problems %v, want %q and not %q", codes(problems), c.code, c.absent)
	}
	if got := Declared(m); c.tier != TierNone && got != c.tier {
		t.Errorf("tier %s, want %s", got, c.tier)
	}
	_, strict := Parse([]byte(doc+"}"), Options{Profile: Strict})
	if got, want := len(errorsOf(strict)) == 0, c.valid && c.differs == ""; got != want {
		t.Errorf("strict: valid %v, want %v: %+v", got, want, errorsOf(strict))
	}
}
