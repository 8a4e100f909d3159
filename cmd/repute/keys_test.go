package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/statement"
)

// command runs the program and gives its exit code and all it said.
func command(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, said bytes.Buffer
	code := run(t.Context(), args, &out, &said)
	return code, out.String() + said.String()
}

// TestSigningKeys makes a key, reads it back through the configuration, and refuses what
// cannot be a key or is not kept secret.
func TestSigningKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	code, address := command(t, "keys", "new", file)
	address = strings.TrimSpace(address)
	if info, err := os.Stat(file); code != 0 || err != nil || info.Mode().Perm() != 0o600 ||
		!common.IsHexAddress(address) {
		t.Fatalf("exit %d, %s, %v", code, address, err)
	}
	if code, said := command(t, "keys", "new", file); code != 2 {
		t.Errorf("overwritten: exit %d, %s", code, said)
	}
	secret, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	open, broken := filepath.Join(dir, "open"), filepath.Join(dir, "broken")
	for path, mode := range map[string]os.FileMode{open: 0o644, broken: 0o600} {
		body := secret
		if path == broken {
			body = append(bytes.TrimSpace(secret), 'x')
		}
		if err := os.WriteFile(path, body, mode); err != nil {
			t.Fatal(err)
		}
	}
	for n, tc := range []struct {
		signing string
		code    int
		want    string
	}{
		{"key: file:" + file, 0, strings.ToLower(address)},
		{"{key: file:" + file + ", retired: ['" + address + " /2030-01-01']}", 0, `"to": "2030-01-01T00:00:00Z"`},
		{"key: file:" + open, 2, "others may read"},
		{"key: file:" + broken, 2, "holds no private key"},
		{"key: file:" + file + ".no", 2, "no such file"},
		{"key: env:REPUTE_NO_SUCH_KEY", 2, "the environment has no REPUTE_NO_SUCH_KEY"},
		{"{key: 'keystore:" + file + "?password_file=" + file + "'}", 2, "neither a variable nor a file"},
		{"{key: file:" + file + ", retired: ['" + address + "']}", 2, "signing.retired[0]"},
		{"{key: file:" + file + ", retired: ['" + address + " 2030-01-01/']}", 2, "signing.retired[0]"},
		{"{retired: ['" + address + " /2030-01-01']}", 2, "signing.key"},
	} {
		path := filepath.Join(dir, fmt.Sprintf("%d.yaml", n))
		if !strings.HasPrefix(tc.signing, "{") {
			tc.signing = "{" + tc.signing + "}"
		}
		if err := os.WriteFile(path, []byte("signing: "+tc.signing+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		code, said := command(t, "keys", "list", "--config", path)
		if code != tc.code || !strings.Contains(said, tc.want) || strings.Contains(said, string(secret[:32])) {
			t.Errorf("%s: exit %d, %s", tc.signing, code, said)
		}
	}
}

// TestVerifySnapshot takes statements and answers, keys by address, file and URL.
func TestVerifySnapshot(t *testing.T) {
	t.Parallel()
	key, err := statement.ParseKey("key", strings.Repeat("07", 32))
	if err != nil {
		t.Fatal(err)
	}
	signer := statement.NewSigner(key, time.Hour, time.Time{}, nil)
	score := repute.Score{Agent: repute.AgentID{ChainID: 8453}, Final: true, Status: repute.Rated, Score: -12_500,
		Block:  repute.Block{Number: 9, Time: time.Unix(1, 0)},
		Result: []byte(`{"guard":{}}`)}
	signed, err := signer.Sign(score, statement.HoldsAsOf{Number: 10, Time: time.Unix(2, 0), VerifiedTo: 10},
		time.Now())
	if err != nil {
		t.Fatal(err)
	}
	old, err := signer.Sign(score, statement.HoldsAsOf{Number: 10, Time: time.Unix(2, 0), VerifiedTo: 10},
		time.Now().Add(-3*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, v any) string {
		body, err := json.Marshal(v)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), body, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, name)
	}
	good, answer, expired := write("good", signed),
		write("answer", map[string]any{"signed": signed, "score": -12.5, "status": "rated",
			"low": 0}), write("old", old)
	forged := signed
	forged.Score = 90_000
	forgery, keys, none := write("forged", forged), write("keys", signer.Keys()), write("none", statement.KeyList{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/gone" {
			http.NotFound(w, r)
			return
		}
		http.ServeFile(w, r, keys)
	}))
	t.Cleanup(server.Close)
	own := signer.Address().Hex()
	for _, tc := range []struct {
		args string
		code int
		want string
	}{
		{good + " --key " + own, 0, `"score": -12.500`},
		{answer + " --keys " + keys, 0, `"valid": true`},
		{good + " --keys " + server.URL, 0, `"agent": "eip155:8453:`},
		{good + " --keys " + server.URL + "/gone", 2, "keys: cannot be read: the server answers 404"},
		{good + " --keys http://127.0.0.1:1/keys", 2, "keys: cannot be read: dial tcp"},
		{good + " --keys http://keys.example/", 2, "is no https URL"},
		{write("other", map[string]any{"signed": signed, "score": 12.5}) + " --key " + own, 1,
			"not valid: score of the answer"},
		{write("status", map[string]any{"signed": signed, "status": "unrated"}) + " --key " + own, 1,
			"not valid: status of the answer"},
		{write("guarded", map[string]any{"signed": signed, "guard": map[string]any{"agent": "eip155:1:0x1:1"}}) +
			" --key " + own, 0, `"guarded": true`},
		{write("unguarded", map[string]any{"signed": signed, "guard": nil}) + " --key " + own, 1,
			"not valid: guard of the answer"},
		{write("unsigned", map[string]any{"agent": "eip155:1:0x1:1", "score": 12.5}) + " --key " + own, 2,
			"ask with signed=1"},
		{good + " --keys " + good, 2, "no list of keys"},
		{good + " --keys " + none, 1, "not trusted"},
		{good + " --key 0x1111111111111111111111111111111111111111", 1, "not trusted"},
		{good + " --key 0x11", 2, "key: not an address"},
		{good, 2, "whose signature is trusted"},
		{good + " --key " + own + " --keys " + keys, 2, "stands beside"},
		{forgery + " --key " + own, 1, "not of this statement"},
		{expired + " --key " + own, 1, "expired"},
		{good + " --agent 8453:0 --key " + own, 0, `"valid": true`},
		{good + " --agent 8453:1 --key " + own, 1, "another agent"},
		{good + " --agent 1:0 --key " + own, 1, "another agent"},
		{good + " --agent x --key " + own, 2, "agent"},
		{good + " --max-age 24h --key " + own, 1, "too old"},
		{good + " --max-age 1000000h --key " + own, 0, `"valid": true`},
		{good + " --max-age=-1s --key " + own, 2, "max-age"},
		{keys + " --key " + own, 2, "statement"},
		{good + "x --key " + own, 2, "no such file"},
	} {
		code, said := command(t, append([]string{"verify-snapshot"}, strings.Fields(tc.args)...)...)
		if code != tc.code || !strings.Contains(said, tc.want) {
			t.Errorf("%s: exit %d, %s", tc.args, code, said)
		}
	}
}
