package service

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"testing"

	"repute"
	"repute/indexer/documents"
	"repute/internal/pgtest"
	"repute/internal/sitetest"
	"repute/resolver"
	"repute/store"
	"repute/store/denydb"
)

// Files that the deny-list forbids are not read for callers either, by whatever way, and what the guard refuses is said
// without addresses.
func TestFilesOfCallers(t *testing.T) {
	t.Parallel()
	const kept, evil, cid = "kept.example.com", "evil.example.com", "bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e"
	asked := make(chan string, 100)
	guard := sitetest.New(t, "127.0.81.25", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Host
		switch r.URL.Path {
		case "/around":
			http.Redirect(w, r, "https://"+evil+"/file", http.StatusFound)
		case "/none":
			http.NotFound(w, r)
		default:
			_, _ = w.Write([]byte(r.URL.Path))
		}
	}), kept, evil)
	client, err := resolver.New(resolver.Options{GuardOptions: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{Classify: documents.Classify})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	sum := sha256.Sum256([]byte("/bad"))
	for kind, value := range map[repute.DenyKind]string{repute.DenyHost: evil, repute.DenyCID: cid,
		repute.DenySHA256: hex.EncodeToString(sum[:])} {
		if err := denydb.Deny(t.Context(), db, repute.Denial{Kind: kind, Value: value, Reason: "court order"},
			false); err != nil {
			t.Fatal(err)
		}
	}
	f := files{client, db}
	if b, err := f.Fetch(t.Context(), "https://"+kept+"/good"); err != nil || string(b) != "/good" {
		t.Errorf("%q, %v", b, err)
	}
	for uri, want := range map[string]string{
		"https://" + evil + "/file": "court order", "https://EVIL.example.com./file": "court order",
		"https://" + kept + "/around": "court order", "https://" + kept + "/bad": "court order",
		"ipfs://" + cid: "court order", "https://" + kept + "/none": "there is no such file",
	} {
		b, err := f.Fetch(t.Context(), uri)
		if isMissing := errors.Is(err, repute.ErrNotFound); isMissing != strings.HasSuffix(uri, "/none") {
			t.Errorf("%s: missing: %t", uri, isMissing)
		}
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), want) || b != nil {
			t.Errorf("%s: %q, %v", uri, b, err)
		}
	}
	direct := 0
	for len(asked) > 0 {
		if <-asked == evil {
			direct++
		}
	}
	if direct > 1 { // at the end of the redirect
		t.Errorf("the denied host was asked %d times", direct)
	}
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, err := f.Fetch(ctx, "https://"+kept+"/good"); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller left: %v", err)
	}
}

// An address that a name leads to is nobody's business.
func TestRefusedAddressIsNotTold(t *testing.T) {
	t.Parallel()
	guard := sitetest.New(t, "127.0.81.26", http.NotFoundHandler())
	guard.AllowPrefixes = nil // the name leads to an address that is not public
	client, err := resolver.New(resolver.Options{GuardOptions: guard})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{Classify: documents.Classify})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	_, err = files{client, db}.Fetch(t.Context(), "https://"+sitetest.Host+"/")
	if !errors.Is(err, repute.ErrInvalid) || strings.Contains(err.Error(), "127.0") ||
		!strings.Contains(err.Error(), "an address that is not public") {
		t.Errorf("%v", err)
	}
}
