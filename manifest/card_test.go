package manifest

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"repute"
)

const card03 = `{
	"protocolVersion": "0.3.0", "name": "Routes", "description": "Plans routes.", "version": "1.2.0",
	"url": "https://routes.example/a2a", "preferredTransport": "JSONRPC",
	"additionalInterfaces": [
		{"url": "https://routes.example/a2a", "transport": "JSONRPC"},
		{"url": "https://routes.example/grpc", "transport": "GRPC"}
	],
	"provider": {"organization": "Routes Ltd", "url": "https://routes.example"},
	"iconUrl": "https://routes.example/i.png", "documentationUrl": "https://routes.example/docs",
	"capabilities": {"streaming": true, "pushNotifications": false, "extensions": [{"uri": "https://ext.example/v1"}]},
	"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "K"}}, "security": [{"key": []}],
	"defaultInputModes": ["application/json"], "defaultOutputModes": ["text/plain"],
	"skills": [{"id": "plan", "name": "Plan", "description": "Plans.", "tags": ["map"], "examples": ["to Rome"]}]
}`

const card10 = `{
	"name": "Routes", "description": "Plans routes.", "version": "1.2.0",
	"supportedInterfaces": [
		{"url": "https://routes.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t"},
		{"url": "https://routes.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"}
	],
	"capabilities": {"streaming": true},
	"defaultInputModes": ["application/json"], "defaultOutputModes": ["text/plain"],
	"skills": [{"id": "plan", "name": "Plan", "description": "Plans.", "tags": ["map"]}],
	"signatures": [{"protected": "e30", "signature": "AA"}]
}`

func TestParseCard(t *testing.T) {
	skills := []repute.CardSkill{{ID: "plan", Name: "Plan", Description: "Plans.", Tags: []string{"map"},
		Extra: raw("examples", `["to Rome"]`)}}
	want := repute.AgentCard{
		Name: "Routes", Description: "Plans routes.", Version: "1.2.0", ProtocolVersions: []string{"0.3.0"},
		Provider:         "Routes Ltd",
		DocumentationURL: "https://routes.example/docs", IconURL: "https://routes.example/i.png",
		Interfaces: []repute.CardInterface{
			{URL: "https://routes.example/a2a", Binding: "JSONRPC"},
			{URL: "https://routes.example/grpc", Binding: "GRPC"},
		},
		Skills: skills, Capabilities: []string{"streaming"}, Extensions: []string{"https://ext.example/v1"},
		SecuritySchemes: []string{"key"},
		InputModes:      []string{"application/json"}, OutputModes: []string{"text/plain"},
	}
	got, problems := ParseCard([]byte(card03))
	for _, name := range []string{"provider", "securitySchemes", "security"} {
		if got.Extra[name] == nil {
			t.Errorf("%s is lost", name)
		}
	}
	if got.Extra = nil; len(problems) != 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("problems %v\n got %+v\nwant %+v", problems, got, want)
	}
}

func TestParseCardOfVersion1(t *testing.T) {
	got, problems := ParseCard([]byte(card10))
	want := []repute.CardInterface{
		{URL: "https://routes.example/a2a", Binding: "JSONRPC", ProtocolVersion: "1.0", Tenant: "t"},
		{URL: "https://routes.example/a2a", Binding: "JSONRPC", ProtocolVersion: "0.3"},
	}
	if !slices.Equal(codesOf(problems), []string{"IC588/signatures"}) || got.Signatures != 1 ||
		got.Extra["signatures"] == nil {
		t.Errorf("problems %v, card %+v", codesOf(problems), got)
	}
	if !reflect.DeepEqual(got.Interfaces, want) || !slices.Equal(got.ProtocolVersions, []string{"1.0", "0.3"}) {
		t.Errorf("interfaces %+v, versions %v", got.Interfaces, got.ProtocolVersions)
	}
}

func TestParseCardProblems(t *testing.T) {
	for _, c := range []struct {
		from, to string
		want     []string
	}{
		{`"name": "Routes", `, ``, []string{"WC525/name"}},
		{`"description": "Plans routes.", `, ``, []string{"WC526/description"}},
		{`"version": "1.2.0",`, ``, []string{"WC580/version"}},
		{`"protocolVersion": "0.3.0", `, ``, []string{"IC587/protocolVersion"}},
		{`"url": "https://routes.example/a2a", "preferred`, `"url": "http://routes.example/a2a", "preferred`,
			[]string{"WC582/url"}},
		{`"url": "https://routes.example/grpc"`, `"url": "/grpc"`, []string{"WC582/additionalInterfaces/1/url"}},
		{`{"id": "plan"`, `{"id": "plan", "name": "a"}, {"id": "plan"`, []string{"WC589/skills/1/id"}},
		{`"id": "plan", `, ``, []string{"WC584/skills/0/id"}},
		{`"name": "Plan", `, ``, []string{"WC585/skills/0/name"}},
		{`"security": [{"key": []}]`, `"security": [{"key": [], "o/x": []}]`, []string{"WC590/security/0/o~1x"}},
		{`"capabilities": {`, `"abilities": {`, []string{"IC586/capabilities"}},
		{`"skills": [`, `"other": [`, []string{"WC583/skills"}},
	} {
		doc := strings.Replace(card03, c.from, c.to, 1)
		if doc == card03 {
			t.Fatalf("%q is not in the document", c.from)
		}
		if _, problems := ParseCard([]byte(doc)); !slices.Equal(codesOf(problems), c.want) {
			t.Errorf("%.60s → %.60s\n got %v\nwant %v", c.from, c.to, codesOf(problems), c.want)
		}
	}
}

// Every kind of document is told from the others, and each parser says what it got.
func TestDetect(t *testing.T) {
	for doc, want := range map[string]struct {
		kind                         repute.DocumentKind
		registration, feedback, card string
	}{
		standard:       {repute.RegistrationDocument, "", "EF529", "EC529"},
		nestedFeedback: {repute.FeedbackDocument, "EA518", "", "EC518"},
		card03:         {repute.CardDocument, "EA505", "EF505", ""},
		card10:         {repute.CardDocument, "EA505", "EF505", ""},
		`{"requestHash":"0x1","validatorAddress":"0x2","response":100}`: {repute.ValidationDocument, "EA519", "EF519",
			"EC519"},
		`{"name":"x"}`:                      {repute.RegistrationDocument, "", "EF509", "EC509"},
		`{"name":"x","url":"https://x"}`:    {repute.RegistrationDocument, "", "EF509", ""},
		`{"score":5,"text":"good"}`:         {repute.FeedbackDocument, "EA518", "", "EC518"},
		`{"text":"good"}`:                   {repute.UnknownDocument, "EA509", "", "EC509"},
		`{"detail":"not found"}`:            {repute.UnknownDocument, "EA506", "EF506", "EC506"},
		`{"iv":"a","ciphertext":"b"}`:       {repute.UnknownDocument, "EA504", "EF504", "EC504"},
		`<html>`:                            {repute.UnknownDocument, "EA501", "EF501", "EC501"},
		``:                                  {repute.UnknownDocument, "EA001", "EF001", "EC001"},
		`{"image":"x","attributes":[]}`:     {repute.UnknownDocument, "EA509", "EF509", "EC509"},
		`{"@context":"https://schema.org"}`: {repute.UnknownDocument, "EA507", "EF507", "EC507"},
	} {
		if got := Detect([]byte(doc)); got != want.kind {
			t.Errorf("%.40s is %s, want %s", doc, got, want.kind)
		}
		_, a := Parse([]byte(doc))
		_, f := ParseFeedback([]byte(doc))
		_, c := ParseCard([]byte(doc))
		if got := firstError(a) + "," + firstError(f) + "," + firstError(c); got != want.registration+","+
			want.feedback+","+
			want.card {
			t.Errorf("%.40s: errors %s, want %+v", doc, got, want)
		}
	}
}

func firstError(problems []repute.Problem) string {
	for _, p := range problems {
		if p.Severity == repute.SeverityError {
			return p.Code
		}
	}
	return ""
}
