package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"repute/devnet"
	"repute/internal/pgtest"
)

// Commands that only look leave the schema alone and say what to do.
func TestGlancesDoNotMigrate(t *testing.T) {
	t.Parallel()
	url := pgtest.Unmigrated(t)
	for _, args := range []string{"status", "documents status", "dump --canonical", "manifest check 8453:22"} {
		var out, said bytes.Buffer
		code := run(t.Context(), append(strings.Fields(args), "--database-url", url), &out, &said)
		if code != 2 || !strings.Contains(said.String(), "repute migrate up") ||
			!strings.Contains(said.String(), "of 127.0.0.1:") {
			t.Errorf("%s: exit %d, %s", args, code, &said)
		}
	}
	mustRun(t, "migrate", "up", "--database-url", url)
	mustRun(t, "status", "--database-url", url)
}

// A process reads documents of a private host and gateway that its configuration names.
func TestConfiguredHostsAreRead(t *testing.T) {
	t.Parallel()
	docs, err := devnet.StartDocuments("")
	if err != nil {
		t.Fatal(err)
	}
	defer docs.Close()
	dir := t.TempDir()
	authority := filepath.Join(dir, "documents.pem")
	if err := os.WriteFile(authority, docs.Certificate(), 0o600); err != nil {
		t.Fatal(err)
	}
	cid, err := docs.Pin([]byte(`{"name":"pinned"}`), devnet.PinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "repute.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "allow_hosts: [%q]\nipfs_gateways: [%q]\n", docs.Host(),
		docs.URL()),
		0o600); err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{docs.Serve("/a.json", "application/json", []byte(`{"name":"served"}`)),
		"ipfs://" + cid} {
		cmd := exec.Command(os.Args[0], "manifest", "check", uri, "--config", config)
		cmd.Env = append(os.Environ(), "REPUTE_RUN_PROGRAM=1", "SSL_CERT_FILE="+authority)
		if out, _ := cmd.CombinedOutput(); !strings.Contains(string(out), "name    served") &&
			!strings.Contains(string(out), "name    pinned") {
			t.Errorf("%s: %s", uri, out)
		}
	}
}
