package agentjson

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"repute"
	"repute/internal/jsonwalk"
	"repute/manifest/agentjson/identity"
	"repute/manifest/agentjson/measure"
)

// FuzzParse feeds the parser untrusted bytes. Whatever they are, problems point into the document, texts can be stored,
// calls stay at the origin, and nothing is verified that has errors.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add(base(`,"intents":[{"name":"a","description":"A description.","endpoint":"//evil.com"}]`))
	f.Add(base(`,` + entries(aLatency) + `,"identity":{"did":"did:web:example.com",` + aKeyOf32 + `}`))
	f.Add(base(`,"display_name":"\ud800\u0000","a":1,"a":1`))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, problems := Parse(b, Options{Host: "example.com"})
		_, strict := Parse(b, Options{Host: "example.com", Profile: Strict})
		if repute.HasErrors(problems) && !repute.HasErrors(strict) {
			t.Fatal("only readers see an error")
		}
		checkProblems(t, b, problems)
		checkProblems(t, b, strict)
		for _, in := range m.Intents {
			if in.URL != "" && !strings.HasPrefix(in.URL, "https://"+m.Origin+"/") && in.URL != "https://"+m.Origin {
				t.Fatalf("%q leads to %q", in.Endpoint, in.URL)
			}
		}
		for _, s := range []string{m.Version, m.Origin, m.PayoutAddress, m.DisplayName, m.Description} {
			if !utf8.ValidString(s) || strings.Contains(s, "\x00") || len(s) > maxText {
				t.Fatalf("%q cannot be stored", s)
			}
		}
		v := Verify(m, problems, Evidence{Host: "example.com", DIDDocument: b, Now: testNow()})
		if v.Verified > v.Declared || repute.HasErrors(problems) && v.Verified != TierNone ||
			v.Verified >= TierIdentified {
			t.Fatalf("%+v", v)
		}
		for _, fetch := range Fetches(m) {
			if !strings.HasPrefix(fetch.URL, "https://"+m.Origin+"/.well-known/") {
				t.Fatal(fetch.URL)
			}
		}
		for _, c := range commitmentsOf(m) {
			measure.Observed{Window: 1 << 50}.Check(measure.Promise{Type: c.Type, Constraint: c.Constraint,
				Verifiable: true})
		}
		if signed, err := SignCommitments(b, testKey(t, 1)); err == nil {
			if _, problems := Parse(signed, Options{}); repute.HasErrors(problems) {
				t.Fatalf("%s", signed)
			}
		}
	})
}

func commitmentsOf(m Manifest) []Commitment {
	if m.Commitments == nil {
		return nil
	}
	return m.Commitments.Entries
}

// checkProblems checks the form of problems.
func checkProblems(t *testing.T, b []byte, problems []repute.Problem) {
	t.Helper()
	for _, p := range problems {
		if Hint(p.Code) == "" || p.Severity != repute.SeverityOf(p.Code) || !utf8.ValidString(p.Message+p.Path) ||
			len(p.Path) > maxShort {
			t.Fatalf("%+v", p)
		}
		if _, ok := jsonwalk.Find(b, p.Path); p.Path == "" && !ok && p.Code == CodeDuplicate {
			t.Fatalf("%+v leads nowhere", p)
		}
	}
}

// FuzzTerms resolves how every intent of untrusted bytes is paid.
func FuzzTerms(f *testing.F) {
	f.Add(base(`,` + paidX402(`"networks":[`+goodBoth+`],"recipient":"R"`) + `,` +
		intents(`"payments":{"x402":{`+ethereum+`}}`)))
	f.Add(base(`,"x402":{"supported":true},"payments":{"mpp":{},"l402":[],"x":1},` +
		priced(`"amount":1e-5,"currency":"USDC","network":["a","b"]`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, _ := Parse(b, Options{})
		for i := range m.Intents {
			terms := m.Terms(i)
			if terms.Bounty == nil && m.Bounty != nil {
				t.Fatal("the root's bounty is lost")
			}
			for _, w := range terms.Ways {
				if w.Protocol == "" && !strings.Contains(string(b), `""`) {
					t.Fatalf("%+v", w)
				}
				if w.RecipientFrom == "" || (w.Direct != "") != (w.DirectFrom != "") ||
					(w.Ticket != "") != (w.TicketFrom != "") {
					t.Fatalf("%+v has a value without a source", w)
				}
				for _, d := range []Decimal{w.Direct, w.Ticket} {
					if got, state := parseDecimal([]byte(d)); d != "" && (state != numberOK || got != d) {
						t.Fatalf("%q is no plain decimal", d)
					}
				}
				if w.Protocol == ProtocolX402 && (w.Network == "" || w.Asset == "") != (len(w.Missing) > 0) {
					t.Fatalf("%+v", w)
				}
			}
		}
	})
}

// FuzzVerify verifies a manifest of tier 3 with untrusted DID documents: only a document with its key verifies it.
func FuzzVerify(f *testing.F) {
	key := testKey(f, 1)
	m, problems := Parse(signedManifest(f, "example.com", key), Options{Host: "example.com"})
	f.Add(didDocument(f, "example.com", testKey(f, 2)))
	f.Add([]byte(`{"id":"did:web:example.com","verificationMethod":["#a"],"assertionMethod":[{"publicKeyMultibase":"z6Mk"}]}`))
	f.Fuzz(func(t *testing.T, did []byte) {
		v := Verify(m, problems, Evidence{Host: "example.com", DIDDocument: did, Now: testNow()})
		if v.Verified < TierIdentified {
			return
		}
		doc, err := identity.ParseDID(did)
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range doc.Methods {
			for _, c := range method.Candidates {
				if identity.EncodeKey(c.Key) == m.Identity.PublicKey {
					return
				}
			}
		}
		t.Fatalf("verified by %s", did)
	})
}

// FuzzPlain compares the one pass over documents without faults with the passes that name the faults.
func FuzzPlain(f *testing.F) {
	for _, text := range []string{string(typical()), `{}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":"\ud800"}`,
		"{\"a\":\"\xff\"}",
		`{"a":"\u0000"}`, `{"a":{"b":1},"b":{"b":1}}`, `[1e999999]`, `{"a":01}`, "{\"a\":\"\n\"}",
		`{"a":"\ud83d\ude00"}`, ``, ` `, `{} {}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		lex := jsonwalk.Scan(b)
		if lex.Depth > maxJSONDepth || !isPlain(b) {
			return
		}
		repeated := ""
		jsonwalk.Duplicates(b, func(pointer string) bool { repeated = pointer; return false })
		if !json.Valid(b) || !utf8.Valid(b) || lex.Surrogates > 0 || repeated != "" {
			t.Errorf("%q is not plain: repeated %q, %+v", b, repeated, lex)
		}
	})
}
