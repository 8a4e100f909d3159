package publication

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	"repute/internal/sitetest"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
	"repute/resolver"
	"repute/resolver/wellknown"
	"repute/x402"
)

var payee = common.HexToAddress("0x71C7656EC7ab88b098defB751B7401B5f6d8976F")

func testKey(seed byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed, 7}, 16))
}

// way is a price of so many smallest units in a token of six decimals.
func way(network, symbol string, amount uint64) agent.Way {
	return agent.Way{Symbol: symbol, Decimals: 6,
		Requirements: x402.Requirements{Scheme: x402.SchemeExact, Network: network,
			Amount: x402.NewAmount(amount), Asset: common.HexToAddress("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
			PayTo: payee}}
}

func service(t interface{ Fatal(...any) }, d capability.Definition, price *agent.Price) *agent.Service {
	d.Version = "1.0.0"
	if d.InputSchema == nil {
		d.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	d.OutputSchema = json.RawMessage(`{"type":"object"}`)
	c, err := capability.New(d)
	if err != nil {
		t.Fatal(err)
	}
	return &agent.Service{Capability: c, Price: price}
}

const reviewSchema = `{"type":"object","required":["code"],"properties":{
	"code":{"type":"string","description":"What to review"},
	"depth":{"type":["null","integer"],"enum":[1,2,3],"default":1},
	"kind":{"const":"fast"},
	"any":true}}`

// reviewer is an agent with a priced, a free and a promised capability.
func reviewer(t *testing.T) Options {
	t.Helper()
	return Options{Domain: sitetest.Host, Name: "Reviewer", Description: "Reviews code.", PayTo: payee, Key: testKey(1),
		Commitments: []Commitment{{Type: "uptime_sla", Constraint: "99.5% monthly uptime", Verifiable: true}},
		Services: []*agent.Service{
			service(t, capability.Definition{Name: "code-review", Description: "Reviews a piece of code.",
				InputSchema: json.RawMessage(reviewSchema)}, &agent.Price{Amount: "0.02", Currency: "USDC", Decimals: 6,
				Ways: []agent.Way{way("eip155:8453", "USDC", 20_000), way("eip155:137", "EURC", 18_500)}}),
			service(t, capability.Definition{Name: "echo"}, nil),
			service(t, capability.Definition{Name: "1-off"},
				&agent.Price{Amount: "0.1", Currency: "ETH", Decimals: 18}),
		}}
}

// served publishes documents over TLS and returns what is proven of them there.
func served(t *testing.T, address string, d Documents) (agentjson.Manifest, []repute.Problem, agentjson.Verdict) {
	t.Helper()
	guard := sitetest.New(t, address, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body := map[string][]byte{"/.well-known/agent.json": d.Manifest, "/.well-known/did.json": d.DID}[r.URL.Path]
		if body == nil {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(body)
	}))
	client, err := resolver.New(resolver.Options{GuardOptions: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	fetcher := wellknown.New(client)
	found, err := fetcher.Manifest(context.Background(), sitetest.Host, wellknown.Known{})
	if err != nil {
		t.Fatal(err)
	}
	m, problems := agentjson.Parse(found.Bytes, agentjson.Options{Host: found.Host, Profile: agentjson.Strict})
	evidence := agentjson.Evidence{Host: found.Host, Now: time.Now()}
	for _, fetch := range agentjson.Fetches(m) {
		if evidence.DIDDocument, err = fetcher.Document(context.Background(), fetch.URL); err != nil {
			t.Fatal(err)
		}
	}
	return m, problems, agentjson.Verify(m, problems, evidence)
}

// What an agent publishes is without any error to publishers, and its tier is proven where it is served.
func TestVerified(t *testing.T) {
	for i, c := range []struct {
		change func(*Options)
		tier   agentjson.Tier
	}{
		{func(*Options) {}, agentjson.TierSigned},
		{func(o *Options) { o.Commitments = nil }, agentjson.TierIdentified},
		{func(o *Options) { o.Commitments, o.Key = nil, nil }, agentjson.TierStructured},
		{func(o *Options) { o.Commitments, o.Key, o.Services = nil, nil, nil }, agentjson.TierMinimal},
	} {
		o := reviewer(t)
		c.change(&o)
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		_, problems, v := served(t, fmt.Sprintf("127.80.2.%d", i+1), d)
		if repute.HasErrors(problems) || v.Verified != c.tier || v.Declared != c.tier {
			t.Errorf("%d: %+v, %+v\n%s", i, v, problems, d.Manifest)
		}
		if (d.DID == nil) != (o.Key == nil) {
			t.Errorf("%d: %s", i, d.DID)
		}
	}
}

// Intents say what a call takes and costs.
func TestIntents(t *testing.T) {
	d, err := New(reviewer(t))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := agentjson.Parse(d.Manifest, agentjson.Options{Host: sitetest.Host})
	if len(m.Intents) != 3 {
		t.Fatalf("%s", d.Manifest)
	}
	review := &m.Intents[0]
	if review.Name != "code_review" || review.Method != http.MethodPost ||
		review.URL != "https://example.com/capability/code-review" {
		t.Errorf("%+v", review)
	}
	got := map[string]string{}
	for _, p := range review.Parameters {
		got[p.Name] = fmt.Sprintf("%s %t %s %s", p.Type, p.Required, p.Enum, p.Default)
	}
	want := map[string]string{"code": "string true [] ", "depth": "integer false [1 2 3] 1",
		"kind": `string false ["fast"] `,
		"any":  "object false [] "}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	ways := m.Terms(0).Ways
	if len(ways) != 2 || ways[0].Network != "eip155:8453" || ways[0].Asset != "USDC" || ways[0].Direct != "0.02" ||
		ways[1].Network != "eip155:137" || ways[1].Direct != "0.0185" || ways[1].Currency != "EURC" ||
		!strings.EqualFold(ways[0].Recipient, payee.Hex()) {
		t.Errorf("%+v", ways)
	}
	if free := m.Terms(1); free.Price != nil || len(free.Ways) != 0 {
		t.Errorf("a free capability: %+v", free)
	}
	if promised := m.Intents[2]; len(m.Terms(2).Ways) != 0 || promised.Name != "run_1_off" ||
		!strings.Contains(promised.Description, "0.1 ETH are promised") {
		t.Errorf("%+v", promised)
	}
}

// The domain is that of the agent's URL, and no other.
func TestDomain(t *testing.T) {
	for _, c := range []struct{ domain, url, origin, endpoint, field string }{
		{"", "https://agent.example.com/a/", "agent.example.com", "/a/capability/echo", ""},
		{"Agent.example.com", "https://agent.example.com", "agent.example.com", "/capability/echo", ""},
		{"", "", "", "", ""},
		{"", "http://agent.example.com", "", "", ""},
		{"", "https://agent.example.com:8443", "", "", ""},
		{"", "https://localhost", "", "", ""},
		{"other.example.com", "https://agent.example.com", "", "", "manifest.domain"},
		{"agent.example.com", "http://agent.example.com", "", "", "manifest.domain"},
		{"https://agent.example.com", "", "", "", "manifest.domain"},
		{"127.0.0.1", "", "", "", "manifest.domain"},
	} {
		d, err := New(Options{Domain: c.domain, URL: c.url, PayTo: payee,
			Services: []*agent.Service{service(t, capability.Definition{Name: "echo"}, nil)}})
		if c.field != "" {
			refused(t, err, c.field)
			continue
		}
		m, _ := agentjson.Parse(d.Manifest, agentjson.Options{})
		if err != nil || m.Origin != c.origin || c.origin != "" && m.Intents[0].Endpoint != c.endpoint {
			t.Errorf("%+v: %v, %s", c, err, d.Manifest)
		}
	}
}

// What nobody could verify, or readers would refuse, is not published.
func TestRefused(t *testing.T) {
	for field, change := range map[string]func(*Options){
		"manifest.domain":      func(o *Options) { o.Domain = "" },
		"manifest.commitments": func(o *Options) { o.Key = nil },
		"manifest":             func(o *Options) { o.Services = append(o.Services, o.Services[0]) },
	} {
		o := reviewer(t)
		change(&o)
		_, err := New(o)
		refused(t, err, field)
	}
}

// refused checks that an error is about a member of the configuration.
func refused(t *testing.T, err error, field string) {
	t.Helper()
	var input *repute.InputError
	if !errors.As(err, &input) || input.Field != field {
		t.Errorf("%v is not about %s", err, field)
	}
}

// The key's DID document has the key of the manifest, whatever the key is.
func TestKey(t *testing.T) {
	for seed := byte(1); seed < 9; seed++ {
		o := reviewer(t)
		o.Key = testKey(seed)
		d, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := identity.ParseDID(d.DID)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, found := doc.Find(o.Key.Public().(ed25519.PublicKey), time.Now()); !found {
			t.Errorf("%s", d.DID)
		}
	}
}

// Definitions of any text and schema give a manifest without errors, and amounts are exact.
func TestAnyDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Uint64Range(1, 1<<40).Draw(t, "amount")
		kind := rapid.SampledFrom([]string{`"string"`, `["null","boolean"]`, `"null"`, `["array"]`}).Draw(t, "type")
		schema, err := json.Marshal(map[string]any{"type": "object", "properties": map[string]any{
			rapid.StringMatching(`[^\x00]{1,20}`).Draw(t, "parameter"): map[string]any{"type": json.RawMessage(kind),
				"description": rapid.StringMatching(`[^\x00]{0,300}`).Draw(t, "about")}}})
		if err != nil {
			t.Fatal(err)
		}
		d := capability.Definition{Name: rapid.StringMatching(`[a-z0-9]{1,20}(-[a-z0-9]{1,20}){0,2}`).Draw(t, "name"),
			Description: rapid.StringN(0, 600, 4096).Draw(t, "description"), InputSchema: schema}
		p := &agent.Price{Currency: "USDC", Decimals: 6, Ways: []agent.Way{way("eip155:8453", "USDC", amount)}}
		p.Amount = p.Ways[0].Amount.Decimal(6)
		out, err := New(Options{Domain: "agent.example.com", Name: rapid.StringN(1, 200, -1).Draw(t, "agent"),
			PayTo:    payee,
			Services: []*agent.Service{service(t, d, p)}})
		if err != nil {
			t.Fatal(err)
		}
		m, _ := agentjson.Parse(out.Manifest, agentjson.Options{})
		back, err := agent.Units(string(m.Terms(0).Ways[0].Direct), 6)
		if err != nil || back.Big().Uint64() != amount {
			t.Errorf("%d units are %s: %v", amount, m.Terms(0).Ways[0].Direct, err)
		}
	})
}
