package files

import (
	"crypto/ed25519"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute"
	"repute/manifest/agentjson/identity"
)

// A publisher's files are made with a key that only its owner can read, have no errors, and never replace others.
func TestPublish(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, file := filepath.Join(dir, "key.pem"), filepath.Join(dir, "agent.json")
	out, err := run(t, "", "keygen", key)
	if err != nil || strings.Contains(out, "PRIVATE") || !strings.Contains(out, "did:key    did:key:z") {
		t.Fatalf("keygen: %q, %v", out, err)
	}
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key has mode %v, %v", info.Mode(), err)
	}
	made := []string{"new", file, "--domain", "shop.example", "--key", key, "--name", "Shop", "--description", "Sells."}
	if out, err = run(t, "", made...); err != nil || !strings.Contains(out, "https://shop.example/.well-known/") {
		t.Fatalf("new: %q, %v", out, err)
	}
	if out, err = run(t, "", "check", file); err != nil || !strings.Contains(out, "kind    agent-json") {
		t.Errorf("check: %v, printed %s", err, out)
	}
	for _, again := range [][]string{{"keygen", key}, made} {
		before, _ := os.ReadFile(again[1])
		_, err := run(t, "", again...)
		if after, _ := os.ReadFile(again[1]); !errors.Is(err, repute.ErrInvalid) || string(after) != string(before) {
			t.Errorf("%s again: %v, changed %t", again[0], err, string(after) != string(before))
		}
	}
	private, err := readKey(key)
	if err != nil {
		t.Fatal(err)
	}
	public := private.Public().(ed25519.PublicKey)
	out, err = run(t, "", "did", "--domain", "shop.example", "--key", key)
	if err != nil || !strings.Contains(out, `"did:web:shop.example"`) ||
		!strings.Contains(out, strings.TrimPrefix(identity.DIDKey(public), "did:key:")) {
		t.Errorf("did: %s, %v", out, err)
	}
}

// A manifest without commitments, or of another key, is not signed and not changed.
func TestSignLeavesWhatItCannotSign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own, other := filepath.Join(dir, "own.pem"), filepath.Join(dir, "other.pem")
	for _, name := range []string{own, other} {
		if _, err := run(t, "", "keygen", name); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "agent.json")
	if _, err := run(t, "", "new", file, "--domain", "shop.example", "--key", own); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{
		"no commitments": {"sign", file, "--key", own},
		"no key":         {"sign", file},
		"no such key":    {"sign", file, "--key", filepath.Join(dir, "none")},
		"no key at all":  {"sign", file, "--key", file},
		"another key":    {"sign", file, "--key", other},
	} {
		if _, err := run(t, "", args...); err == nil {
			t.Errorf("%s: signed", name)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("the manifest was changed: %v", err)
	}
}

// What is wrong with the flags of did is said with the flag, and no address, URL or path is taken for a domain.
func TestDIDRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"did"}, "domain: is missing"},
		{[]string{"did", "shop.example"}, "takes no argument"},
		{[]string{"did", "--domain", "https://shop.example"}, "domain: "},
		{[]string{"did", "--domain", "shop.example/x"}, "domain: "},
		{[]string{"did", "--domain", "10.0.0.1"}, "domain: "},
		{[]string{"did", "--domain", "shop.example"}, "key: is missing"},
		{[]string{"did", "--domain", "shop.example", "--key", "/nowhere"}, "key: "},
	} {
		if out, err := run(t, "", c.args...); err == nil || !strings.HasPrefix(err.Error(), c.want) || out != "" {
			t.Errorf("%q: %v, printed %q", c.args, err, out)
		}
	}
}
