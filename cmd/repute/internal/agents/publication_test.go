package agents_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/cmd/repute/internal/clitest"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
)

const manifestLines = `manifest: {domain: agent.example.com, key_env: TEST_MANIFEST_KEY,
  commitments: [{type: uptime_sla, constraint: 99.5% monthly uptime, verifiable: true}]}`

// TestServePublishes: an agent that runs serves the manifest that follows from its file, signed by the key of the
// environment, and does not start with a key that is none.
func TestServePublishes(t *testing.T) {
	w := newWorld(t)
	handler, _, _ := worker(t)
	file := w.agentFile(t, "0", w.key, manifestLines, handler)
	t.Setenv("TEST_MANIFEST_KEY", "secret")
	out := &clitest.Output{}
	ctx, end := context.WithTimeout(t.Context(), time.Minute)
	defer end()
	err := w.run(ctx, out, "serve", "--config", file, "--main-config", w.main, "--database-url", w.database)
	if err == nil || !strings.HasPrefix(err.Error(), "manifest.key_env: ") || strings.Contains(err.Error(), "secret") {
		t.Fatalf("%v", err)
	}
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{3, 5}, 16))
	text, err := identity.EncodePrivateKey(key)
	ok(t, err)
	t.Setenv("TEST_MANIFEST_KEY", string(text))
	url, _, _ := w.serve(t, file)
	read := func(path string) []byte {
		res, err := http.Get(url + path)
		ok(t, err)
		defer res.Body.Close()
		raw, err := io.ReadAll(res.Body)
		ok(t, err)
		return raw
	}
	raw := read("/.well-known/agent.json")
	m, problems := agentjson.Parse(raw, agentjson.Options{Host: "agent.example.com", Profile: agentjson.Strict})
	v := agentjson.Verify(m, problems, agentjson.Evidence{Host: "agent.example.com", Now: time.Now(),
		DIDDocument: read("/.well-known/did.json")})
	if repute.HasErrors(problems) || v.Verified != agentjson.TierSigned || len(m.Intents) != 2 {
		t.Fatalf("%+v, %+v\n%s", v, problems, raw)
	}
	if ways := m.Terms(1).Ways; len(ways) != 1 || ways[0].Network != "eip155:31337" || ways[0].Direct != "0.02" ||
		!strings.EqualFold(ways[0].Contract, w.Token.Hex()) || !strings.EqualFold(ways[0].Recipient, w.Payee().Hex()) {
		t.Errorf("%s", raw)
	}
}
