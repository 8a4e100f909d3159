package agentjson

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"repute"
)

// base is a minimal manifest with more members.
func base(members string) []byte {
	return []byte(`{"version":"1.4","origin":"example.com","payout_address":"0x71C7656EC7ab88b098defB751B7401B5f6d8976F"` +
		members + `}`)
}

// problemAt returns "code path" of each problem.
func problemAt(problems []repute.Problem) (out []string) {
	for _, p := range problems {
		out = append(out, strings.TrimSpace(p.Code+" "+p.Path))
	}
	return out
}

// Documents that are no manifest, or not as JSON should be.
func TestDocuments(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		doc  string
		want string // code and path of a problem
	}{
		"empty":             {"", "EJ001"},
		"blank":             {" \n", "EJ001"},
		"HTML":              {"<!doctype html>", "EJ501"},
		"UTF-16":            {"\xff\xfe{\x00}\x00", "EJ591"},
		"text":              {"agent", "EJ500"},
		"array":             {"[]", "EJ503"},
		"trailing data":     {string(base("")) + "{}", "EJ500"},
		"NaN":               {`{"version":NaN}`, "EJ500"},
		"deep":              {strings.Repeat("[", 100_000), "EJ502"},
		"deep but closed":   {`{"version":` + strings.Repeat("[", 65) + strings.Repeat("]", 65) + `}`, "EJ502"},
		"10 MB":             {strings.Repeat("x", 10<<20), "EJ600"},
		"one byte too much": {strings.Repeat(" ", MaxBytes+1), "EJ600"},
		"empty object":      {"{}", "EJ509"},
		"no origin":         {`{"version":"1.0","payout_address":"a"}`, "EJ602 /origin"},
		"no payout_address": {`{"version":"1.0","origin":"example.com","payout_address":""}`, "EJ602 /payout_address"},
		"no version":        {`{"origin":"example.com","payout_address":"a"}`, "EJ602 /version"},
		"version 1.5":       {`{"version":"1.5","origin":"example.com","payout_address":"a"}`, "WJ611 /version"},
		"version 1.04":      {`{"version":"1.04","origin":"example.com","payout_address":"a"}`, "EJ610 /version"},
		"version number":    {`{"version":1.4,"origin":"example.com","payout_address":"a"}`, "EJ520 /version"},
		"byte order mark":   {"\xef\xbb\xbf" + string(base("")), "IJ514"},
		"repeated":          {string(base(`,"origin":"evil.example"`)), "EJ510 /origin"},
		"repeated escaped":  {string(base(`,"\u006frigin":"evil.example"`)), "EJ510 /origin"},
		"repeated inside":   {string(base(`,"x-a":[{"b":1,"b":1}]`)), "EJ510 /x-a/0/b"},
		"half a surrogate":  {string(base(`,"display_name":"\ud800"`)), "WJ511"},
		"NUL":               {string(base(`,"display_name":"\u0000"`)), "WJ512"},
		"invalid UTF-8":     {string(base(`,"display_name":"` + "\xff" + `"`)), "WJ513"},
		"null":              {string(base(`,"display_name":null`)), "EJ520 /display_name"},
		"zero address":      {`{"version":"1.0","origin":"example.com",` + zeroPay + `}`, "WJ614 /payout_address"},
		"template": {`{"version":"1.0","origin":"example.com","payout_address":"0xYOUR_ADDRESS"}`,
			"WJ615 /payout_address"},
		"short address": {`{"version":"1.0","origin":"example.com","payout_address":"0x1234"}`,
			"WJ615 /payout_address"},
		"wrong checksum": {`{"version":"1.0","origin":"example.com","payout_address":"0x71C7656EC7ab88b098defB751B7401B5f6d8976f"}`, "WJ593 /payout_address"},
		"payments in 1.2": {`{"version":"1.2","origin":"example.com","payout_address":"a","payments":{}}`,
			"IJ616 /payments"},
		"long name": {string(base(`,"display_name":"` + strings.Repeat("ä", 101) + `"`)),
			"WJ607 /display_name"},
		"very long name": {string(base(`,"display_name":"` + strings.Repeat("ä", 4000) + `"`)),
			"WJ515 /display_name"},
		"short intent": {string(base(`,"intents":[{"name":"a","description":"short"}]`)),
			"WJ607 /intents/0/description"},
		"intent of text": {string(base(`,"intents":["a"]`)), "EJ520 /intents/0"},
		"too many digits": {string(base(`,` + priced(`"amount":1e31,"currency":"USD"`))),
			"EJ608 /intents/0/price/amount"},
		"exponent bomb": {string(base(`,` + priced(`"amount":1e-999999999,"currency":"USD"`))),
			"EJ608 /intents/0/price/amount"},
		"amount as text": {string(base(`,` + priced(`"amount":"1","currency":"USD"`))),
			"EJ520 /intents/0/price/amount"},
		"part of a call": {string(base(`,` + priced(`"amount":1,"currency":"USD","free_tier":1.5`))),
			"EJ608 /intents/0/price/free_tier"},
		"unit of nothing": {string(base(`,` +
			priced(`"amount":1,"currency":"USD","model":"per_unit","unit_param":"n"`))),
			"WJ631 /intents/0/price/unit_param"},
		"no way to pay": {string(base(`,` + paidX402(`"networks":[`+goodBase+`]`) + `,` +
			priced(`"amount":1,"currency":"USDC","network":"arbitrum"`))), "WJ656 /intents/0/price/network"},
		"facilitator": {string(base(`,` +
			paidX402(`"network":"base","asset":"USDC","facilitator":"http://f.example"`))),
			"WJ654 /payments/x402/facilitator"},
		"34 bytes of key": {string(base(`,"identity":{"public_key":"7QHXWpgBgrEKt9VL_tPJZAc6DuFy89qmIyWvAhpo9wdRGg"}`)),
			"WJ661 /identity/public_key"},
		"placeholder key": {string(base(`,"identity":{` + aKeyOf32 + `}`)), "WJ662 /identity/public_key"},
		"padded key": {string(base(`,"identity":{"public_key":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo="}`)),
			"WJ663 /identity/public_key"},
		"did of another": {string(base(`,"identity":{"did":"did:web:other.example"}`)), "WJ660 /identity/did"},
		"did of a path":  {string(base(`,"identity":{"did":"did:web:example.com:alice"}`)), "WJ660 /identity/did"},
		"no did":         {string(base(`,"identity":{"did":"example.com"}`)), "EJ606 /identity/did"},
		"signed integer": {string(base(`,` + committed(aSchema10+
			`,"entries":[{"type":"a","constraint":"b","x-n":9007199254740993}],"signature":"a"`))),
			"WJ674 /commitments/entries"},
		"not measured": {string(base(`,` +
			entries(`{"type":"uptime_sla","constraint":"five nines","verifiable":true}`))),
			"IJ675 /commitments/entries/0/constraint"},
		"tilde in name": {string(base(`,"intents":[{"name":"a_b","description":"A description.","parameters":{"a/b~":{}}}]`)), "EJ602 /intents/0/parameters/a~1b~0/type"},
	} {
		_, problems := Parse([]byte(c.doc), Options{})
		if got := problemAt(problems); !slices.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// A manifest with nothing wrong has no problem in either profile, and all of it is read.
func TestParse(t *testing.T) {
	t.Parallel()
	doc := base(`,"display_name":"Näme\u0020<&>\u2028","description":"d","extensions":{"v":{"a":1}},"x-own":[1],
		"intents":[{"name":"search","description":"Finds what you look for.","endpoint":"/api?q=1","method":"GET",
		"parameters":{"n":{"type":"integer","required":true,"default":9007199254740993,"enum":[1,"a"]}},
		"returns":{"type":"object","properties":{"a":{"type":"string"}},"description":"r"},
		"price":{"amount":0.10,"currency":"USDC","model":"per_unit","unit_param":"n","free_tier":1e2,"network":["base"]},
		"bounty":{"type":"cpa","rate":1e-7,"currency":"USDC","splits":{"orchestrator":0.7,"platform":0.2,"referrer":0.1}}}],
		"payments":{"x402":{"networks":[` + goodBase + `]}}`)
	for _, profile := range []Profile{Lenient, Strict} {
		m, problems := Parse(doc, Options{Profile: profile, Host: "EXAMPLE.com."})
		if len(problems) > 0 {
			t.Errorf("%+v", problems)
		}
		in := m.Intents[0]
		got := fmt.Sprint(m.Origin, m.DisplayName, in.URL, in.Price.Amount, in.Price.FreeTier, in.Bounty.Rate,
			string(in.Parameters[0].Default), len(in.Parameters[0].Enum), in.Bounty.Splits.Orchestrator,
			string(m.Extensions),
			string(m.Extra["x-own"]), m.Payments.Protocols, in.Returns.Type)
		const want = "example.comNäme <&>\u2028https://example.com/api?q=10.1 100 0.0000001" +
			"9007199254740993 20.7{\"v\":{\"a\":1}}[1] [x402]object"
		if strings.ReplaceAll(got, " ", "") != strings.ReplaceAll(want, " ", "") {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
}

func TestDecimal(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Decimal{
		"0": "0", "-0": "0", "0.0": "0", "0e999999999999": "0", "12": "12", "0.50": "0.5", "1e2": "100", "1.5E+1": "15",
		"12.34e1": "123.4", "12.34e-1": "1.234", "0.001e3": "1", "1e-7": "0.0000001", "100": "100", "5e0": "5",
		"123456789012345678901234567890": "123456789012345678901234567890",
		"1e30":                           "", "1e-31": "", "-1": "", "-1e-9": "", "1e999999999999": "",
	} {
		got, state := parseDecimal([]byte(text))
		if got != want || (state == numberOK) != (want != "") {
			t.Errorf("%s: %q (%d), want %q", text, got, state, want)
		}
	}
	order := []Decimal{"", "0", "0.05", "0.5", "0.55", "1", "9.99", "10", "100.01", "100.1"}
	for i, a := range order {
		for j, b := range order {
			if got := a.Cmp(b); (got < 0) != (i < j) || (got > 0) != (i > j) {
				t.Errorf("%q and %q: %d", a, b, got)
			}
		}
	}
}

// The host that serves a manifest is its origin exactly, or the manifest has an error.
func TestSameHost(t *testing.T) {
	t.Parallel()
	for pair, want := range map[[2]string]bool{
		{"example.com", "example.com"}:                true,
		{"Example.COM", "example.com."}:               true,
		{"xn--bcher-kva.example", "bücher.example"}:   true,
		{"example.com", "www.example.com"}:            false,
		{"github.io", "attacker.github.io"}:           false,
		{"attacker.github.io", "github.io"}:           false,
		{"example.com", "example.com:443"}:            false,
		{"example.com", "user@example.com"}:           false,
		{"example.com", "example.com/x"}:              false,
		{"apple.com", "аpple.com"}:                    false, // with the Cyrillic letter a
		{"xn--pple-43d.com", "apple.com"}:             false,
		{"example.com", "example.com\u3002evil.test"}: false,
		{"", ""}:                       false,
		{"example.com", "example。com"}: true, // browsers read the ideographic full stop as a dot
	} {
		if got := SameHost(pair[0], pair[1]); got != want {
			t.Errorf("%q: %v", pair, got)
		}
		_, problems := Parse([]byte(fmt.Sprintf(`{"version":"1.0","origin":%q,"payout_address":"a"}`, pair[0])),
			Options{Host: pair[1]})
		if refused := repute.HasErrors(problems); pair[1] != "" && refused == want {
			t.Errorf("%q: %+v", pair, problems)
		}
	}
}

func TestOriginForms(t *testing.T) {
	t.Parallel()
	for origin, want := range map[string]string{
		"example.com":         "",
		"EXAMPLE.com":         "",
		"https://example.com": "EJ606",
		"example.com:8443":    "EJ606",
		"example.com/":        "EJ606",
		"u@example.com":       "EJ606",
		"*.example.com":       "EJ606",
		"-a.example":          "EJ606",
		"a..example":          "EJ606",
		"аpple.com":           "EJ606",
		"bücher.example":      "EJ606",
		"example.com\u2028":   "EJ606",
		"localhost":           "WJ613",
		"127.0.0.1":           "WJ613",
		"0x7f.1":              "WJ613",
		"a.internal":          "WJ613",
	} {
		_, problems := Parse([]byte(fmt.Sprintf(`{"version":"1.0","origin":%q,"payout_address":"a"}`, origin)),
			Options{})
		got := ""
		if len(problems) > 0 {
			got = problems[0].Code
		}
		if got != want {
			t.Errorf("%q: %q, want %q", origin, got, want)
		}
	}
}

// Endpoints outside the origin, and those that parsers read differently, have no URL.
func TestEndpoints(t *testing.T) {
	t.Parallel()
	for endpoint, want := range map[string]string{
		"/api/x":                          "https://example.com/api/x",
		"api/x?a=b":                       "https://example.com/api/x?a=b",
		"https://example.com/v1":          "https://example.com/v1",
		"https://EXAMPLE.com:443/v1":      "https://example.com/v1",
		"/../../x":                        "https://example.com/x",
		"//evil.com/x":                    "",
		"/\\evil.com/x":                   "",
		"\\\\evil.com":                    "",
		"https://evil.com/x":              "",
		"https://example.com.evil.com/x":  "",
		"https://sub.example.com/x":       "",
		"https://example.com@evil.com/x":  "",
		"https://user:pw@example.com/x":   "",
		"https://example.com:8443/x":      "",
		"https://example.com:/x":          "",
		"http://example.com/x":            "",
		"javascript:alert(1)":             "",
		"mailto:a@example.com":            "",
		"data:text/html,x":                "",
		"https:example.com":               "",
		"https:///x":                      "",
		"///evil.com/x":                   "",
		"/x\ty":                           "",
		"/x y":                            "",
		"https://example.com\u3002evil.c": "",
		"%zz":                             "",
		"https://[::1]/x":                 "",
	} {
		in := fmt.Sprintf(`,"intents":[{"name":"a","description":"A description.","method":"GET","endpoint":%q}]`,
			endpoint)
		m, problems := Parse(base(in), Options{})
		if got := m.Intents[0].URL; got != want {
			t.Errorf("%q: %q, want %q", endpoint, got, want)
		}
		if reported := slices.Contains(codes(problems), CodeEndpoint); reported != (want == "") {
			t.Errorf("%q: %v", endpoint, codes(problems))
		}
		_, strict := Parse(base(in), Options{Profile: Strict})
		if repute.HasErrors(strict) != (want == "") {
			t.Errorf("%q: strict %v", endpoint, codes(strict))
		}
	}
}

// Ten thousand intents are read as far as the bound, in time and with a problem.
func TestManyIntents(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 10_000 {
		list = append(list, fmt.Sprintf(`{"name":"i%d","description":"0123456789"}`, i))
	}
	m, problems := Parse(base(`,"intents":[`+strings.Join(list, ",")+`]`), Options{})
	if len(m.Intents) != maxIntents || !slices.Contains(codes(problems), CodeTooMany) || repute.HasErrors(problems) {
		t.Errorf("%d intents, %v", len(m.Intents), codes(problems))
	}
	_, problems = Parse(base(`,"intents":[`+strings.TrimSuffix(strings.Repeat("{},", 10_000), ",")+`]`), Options{})
	if len(problems) != maxProblems+1 || problems[maxProblems].Code != CodeMore {
		t.Errorf("%d problems", len(problems))
	}
}

// Entries beyond the limit of a list take no room, however many there are.
func TestLongListsTakeNoRoom(t *testing.T) {
	t.Parallel()
	r := &reader{}
	r.borrow()
	defer r.giveBack()
	root := r.document(base(`,"intents":[` + strings.Repeat("0,", 100*maxIntents) + `0]`))
	r.manifest(root, "")
	if i := slices.IndexFunc(r.problems, func(p repute.Problem) bool { return p.Code == CodeTooMany }); i < 0 ||
		r.problems[i].Message != "100001 entries, cut to 1000" {
		t.Errorf("%+v", r.problems)
	}
	if len(r.slab) > 2*maxIntents {
		t.Errorf("room of %d members for %d intents", len(r.slab), maxIntents)
	}
}

// Manifests of half a megabyte made to cost as much as they can are judged like others, and what is kept of them is
// bounded.
func TestHostileManifests(t *testing.T) {
	t.Parallel()
	fill := func(open, unit, end string) []byte {
		head := string(base(open))
		head = head[:len(head)-1]
		n := (MaxBytes - len(head) - len(end) - 1) / len(unit)
		return []byte(head + strings.Repeat(unit, n) + end + "}")
	}
	for name, doc := range map[string][]byte{
		"unknown members": fill(`,"a":0`, `,"b":0`, ``),
		"own members":     fill(`,"x-a":0`, `,"x-b":[0]`, ``),
		"parameters": fill(`,"intents":[{"name":"a","description":"A description.","parameters":{"a":0`, `,"a":{}`,
			`}}]`),
		"networks":  fill(`,"payments":{"x402":{"networks":[0`, `,{"network":"a","asset":"b"}`, `]}}`),
		"protocols": fill(`,"payments":{"a":0`, `,"b":0`, `}`),
		"entries": fill(`,"commitments":{"schema_version":"1.0","signature":"a","entries":[0`, `,{"type":"a"}`,
			`]}`),
		"enum":    fill(`,"intents":[{"name":"a","description":"A description.","parameters":{"a":{"type":"string","enum":[0`, `,0`, `]}}}]`),
		"escapes": fill(`,"description":"`, `\u0000`, `"`),
		"quotes":  fill(`,"description":"`, `\\\"`, `"`),
		"deep":    fill(`,"extensions":{"a":[0`, `,`+strings.Repeat(`[`, 60)+strings.Repeat(`]`, 60), `]}`),
	} {
		m, problems := Parse(doc, Options{})
		if len(problems) == 0 || len(problems) > maxProblems+1 {
			t.Errorf("%s: %d problems", name, len(problems))
		}
		kept := len(m.Extensions)
		for member, raw := range m.Extra {
			kept += len(member) + len(raw)
		}
		if m.Payments != nil {
			for member, raw := range m.Payments.Other {
				kept += len(member) + len(raw)
			}
		}
		if kept > maxExtra || len(m.Description) > maxText {
			t.Errorf("%s: %d bytes kept", name, kept)
		}
		if v := Verify(m, problems, Evidence{Host: "example.com"}); v.Verified > TierStructured {
			t.Errorf("%s: verified as %s", name, v.Verified)
		}
	}
}

// Other formats that are served at the same path are named, and none is taken for a manifest.
func TestDetect(t *testing.T) {
	t.Parallel()
	for want, docs := range map[Format][]string{
		FormatAgentJSON: {string(base("")), `{"version":"1.0","origin":"a.example"}`, `{"payout_address":"a"}`,
			`{"intents":[]}`},
		FormatA2ACard: {`{"name":"a","url":"https://a.example","capabilities":{},"skills":[],"protocolVersion":"0.2.5"}`,
			`{"name":"a","supportedInterfaces":[]}`,
			`{"version":"1.4","name":"a","url":"https://a.example","protocolVersion":"1","skills":[{"id":"x"}]}`},
		FormatAWP:         {`{"awp_version":"0.2","domain":"a.example","intent":"i","actions":[]}`},
		FormatIdentityKit: {`{"$schema":"https://a.example","version":"1.0","agent":{"name":"a"},"owner":{},"capabilities":[]}`},
		FormatAMS:         {`{"$agent":"1.0","id":"agent://a/b","name":"a","version":"1.0.0","payment":{}}`},
		FormatACP:         {`{"id":"a","name":"a","version":"1.0.0","description":"d","distribution":{"npx":{}}}`},
		FormatQuality:     {`{"name":"a","description":"d","version":"1.2.0","protocols":["a2a"],"tests":{}}`},
		FormatFacts:       {`{"schema_version":"1.0","subject":{"name":"a"},"facts":[]}`},
		FormatUnknown:     {`{}`, `[]`, `{"name":"a","description":"d"}`, `{`, strings.Repeat("[", 1000)},
	} {
		for _, doc := range docs {
			if got := Detect([]byte(doc)); got != want {
				t.Errorf("%s: %s, want %s", doc, got, want)
			}
			m, problems := Parse([]byte(doc), Options{})
			if want == FormatAgentJSON {
				continue
			}
			if m.Version != "" || !repute.HasErrors(problems) {
				t.Errorf("%s was read as a manifest: %+v", doc, problems)
			}
			if want != FormatUnknown && !strings.Contains(problems[0].Message, want.Title()) {
				t.Errorf("%s: %q does not name %q", doc, problems[0].Message, want.Title())
			}
		}
	}
}
