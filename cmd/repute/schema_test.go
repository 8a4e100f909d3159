package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http/httptest"
	"os"
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
		if code != 2 || !strings.Contains(said.String(), "repute migrate up") || !strings.Contains(said.String(), "of 127.0.0.1:") {
			t.Errorf("%s: exit %d, %s", args, code, &said)
		}
	}
	mustRun(t, "migrate", "up", "--database-url", url)
	mustRun(t, "status", "--database-url", url)
}

// extra_ca lets documents come from hosts of a private authority.
func TestExtraCA(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	good := write("good.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
	c, err := loadWith(t, "extra_ca: "+good)
	if err != nil || c.roots == nil {
		t.Fatal(err)
	}
	if _, err := s.Certificate().Verify(x509.VerifyOptions{Roots: c.roots}); err != nil {
		t.Errorf("not trusted: %v", err)
	}
	for _, file := range []string{write("bad.pem", []byte("no certificate")), filepath.Join(dir, "absent.pem")} {
		if _, err := loadWith(t, "extra_ca: "+file); err == nil || !strings.Contains(err.Error(), "extra_ca") {
			t.Errorf("%s: %v", file, err)
		}
	}
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
	c, err := loadWith(t, fmt.Sprintf("extra_ca: %q\nallow_hosts: [%q]\nipfs_gateways: [%q]\n", authority, docs.Host(), docs.URL()))
	if err != nil {
		t.Fatal(err)
	}
	client, err := c.resolver(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	cid, err := docs.Pin([]byte(`{"name":"pinned"}`), devnet.PinOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, uri := range []string{docs.Serve("/a.json", "application/json", []byte(`{"name":"served"}`)), "ipfs://" + cid} {
		if doc, err := client.Fetch(t.Context(), uri); err != nil || !strings.Contains(string(doc.Bytes), "name") {
			t.Errorf("%s: %v, %v", uri, doc, err)
		}
	}
}
