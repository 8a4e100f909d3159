package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ipfs/go-cid"

	"repute"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docdb"
)

// withheld fails where bytes are given to anybody.
func withheld(t *testing.T, db *store.DB, what, body string) {
	t.Helper()
	var denied *repute.DeniedError
	if c, err := docdb.Body(ctxOf(t), db, sha256.Sum256([]byte(body))); !errors.As(err, &denied) {
		t.Errorf("%s: the document is %q, %v", what, c.Body, err)
	}
	if b, err := docdb.ReadBlock(ctxOf(t), db, multihash([]byte(body))); !errors.As(err, &denied) {
		t.Errorf("%s: the block is %q, %v", what, b, err)
	}
}

// What a host or an agent gave before is denied like what it gives now, and dropped.
func TestDeniedVersions(t *testing.T) {
	t.Parallel()
	const url = "https://bad.example/0"
	for _, d := range []repute.Denial{{Kind: repute.DenyHost, Value: "bad.example", Reason: "r"},
		{Kind: repute.DenyAgent, Value: "7:0", Reason: "r"}} {
		db, w := queue(t, url, "data:,x")
		atHost(t, db, "bad.example")
		u := claim(t, db, "bad.example")[url]
		for _, body := range []string{"first secret", "shared", "second secret"} {
			read(t, db, u, body, nil)
		}
		read(t, db, claim(t, db, "")["data:,x"], "shared", nil)
		ok(t, denydb.Deny(ctxOf(t), db, d, true))
		withheld(t, db, string(d.Kind), "first secret")
		withheld(t, db, string(d.Kind), "second secret")
		if c, err := docdb.Body(ctxOf(t), db, sha256.Sum256([]byte("shared"))); err != nil ||
			string(c.Body) != "shared" {
			t.Errorf("denied %s: what another gives, too: %q, %v", d.Kind, c.Body, err)
		}
		var kept int
		ok(t, db.Pool().QueryRow(ctxOf(t), "select count(*) from documents where body is not null").Scan(&kept))
		if kept != 1 {
			t.Errorf("denied %s: %d bodies are kept", d.Kind, kept)
		}
		page, err := docdb.Versions(ctxOf(t), db, w.id(0), "", 10)
		ok(t, err)
		for _, v := range page.Items {
			if v.Kept {
				t.Errorf("denied %s: kept %+v", d.Kind, v)
			}
		}
	}
}

// An agent's denial does not reach the document of another that shows the same.
func TestDeniedAgentShares(t *testing.T) {
	t.Parallel()
	const url = "https://x/0"
	db, _ := queue(t, url, url)
	read(t, db, claim(t, db, "")[url], "both", nil)
	sum := sha256.Sum256([]byte("both"))
	ok(t, denydb.Deny(ctxOf(t), db, repute.Denial{Kind: repute.DenyAgent, Value: "7:0", Reason: "r"}, true))
	if c, err := docdb.Body(ctxOf(t), db, sum); err != nil || string(c.Body) != "both" {
		t.Errorf("one of two is denied: %q, %v", c.Body, err)
	}
	ok(t, denydb.Deny(ctxOf(t), db, repute.Denial{Kind: repute.DenyAgent, Value: "7:1", Reason: "r"}, false))
	withheld(t, db, "both are denied", "both")
}

// What is denied is neither told, nor read, nor kept when it comes from elsewhere, and
// is all of that when it is allowed again.
func TestDeniedBytesAreNotRead(t *testing.T) {
	t.Parallel()
	file := docdb.Block{Multihash: multihash([]byte("a file of two parts")), Data: []byte("the secret block")}
	root, err := cid.Cast(append([]byte("\x01\x70"), file.Multihash...))
	ok(t, err)
	for _, d := range []repute.Denial{
		{Kind: repute.DenySHA256, Value: fmt.Sprintf("%x", sha256.Sum256([]byte("secret")))},
		{Kind: repute.DenyCID, Value: root.String()},
	} {
		d.Reason = "r"
		db, w := queue(t, "https://x/0", "https://x/1")
		u := claim(t, db, "")
		ok(t, denydb.Deny(ctxOf(t), db, d, true))
		r := docdb.FetchResult{URIID: u["https://x/0"].ID, Body: []byte("secret"), Source: "ipfs", Root: file.Multihash,
			FetchedAt:     time.Now(),
			ParserVersion: 1, Registration: linked("Libellous", w.id(0)), Blocks: []docdb.Block{file},
			Domains: []docdb.Domain{{Name: "b.example",
				Proof: "https://b.example/.well-known/agent-registration.json"}}}
		save(t, db, r)
		for _, c := range readChanges(t, ctxOf(t), db, "") {
			if strings.Contains(string(c.Data), "Libellous") {
				t.Errorf("%s: the feed tells %s", d.Kind, c.Data)
			}
		}
		for _, table := range []string{"ipfs_blocks", "parses", "links", "domains", "searchable"} {
			if n := count(t, db, table); n != 0 {
				t.Errorf("%s: %d rows of %s", d.Kind, n, table)
			}
		}
		// The file's own CID counts, also where other URIs give the bytes.
		read(t, db, u["https://x/1"], "secret", linked("Libellous"))
		for _, id := range []int{0, 1} {
			if got := documentOf(t, db, w.id(id)); got.Status != repute.DocumentDenied {
				t.Errorf("%s: agent %d shows %+v", d.Kind, id, got)
			}
		}
		ok(t, denydb.Undeny(ctxOf(t), db, d.Kind, d.Value))
		again := claim(t, db, "")
		if len(again) != 2 {
			t.Errorf("%s: allowed again, due are %v", d.Kind, again)
		}
		save(t, db, r)
		if got := documentOf(t, db, w.id(0)); got.Status != repute.DocumentOK || got.Registration.Name != "Libellous" ||
			count(t, db, "ipfs_blocks") != 1 {
			t.Errorf("%s: allowed again %+v", d.Kind, got)
		}
	}
}

// A CID names bytes, whichever URI leads to them; a directory's names only what is
// reached by it.
func TestDeniedCIDElsewhere(t *testing.T) {
	t.Parallel()
	file := cid.NewCidV1(cid.DagProtobuf, multihash([]byte("file")))
	dir := cid.NewCidV1(cid.DagProtobuf, multihash([]byte("directory")))
	for name, c := range map[string]struct {
		deny string
		all  bool
	}{
		"raw":       {cid.NewCidV1(cid.Raw, multihash([]byte("secret"))).String(), true},
		"file":      {file.String(), true},
		"directory": {dir.String(), false},
	} {
		db, w := queue(t, "https://x/0", "ipfs://d/f")
		read(t, db, claim(t, db, "")["https://x/0"], "secret", linked("Mallory"))
		save(t, db, docdb.FetchResult{URIID: claimID(t, db, "ipfs://d/f"), Body: []byte("secret"), Source: "ipfs",
			CID: dir.String(), Root: file.Hash(),
			FetchedAt: fetched, ParserVersion: 1, Registration: linked("Mallory")})
		ok(t, denydb.Deny(ctxOf(t), db, repute.Denial{Kind: repute.DenyCID, Value: c.deny, Reason: "r"}, false))
		if c.all {
			withheld(t, db, name, "secret")
		}
		for id, denied := range []bool{c.all, true} {
			if d := documentOf(t, db, w.id(id)); (d.Status == repute.DocumentDenied) != denied {
				t.Errorf("%s: agent %d shows %s %+v", name, id, d.Status, d.Registration)
			}
		}
	}
}

// claimID is the id of a URI, due or not.
func claimID(t *testing.T, db *store.DB, uri string) (id int64) {
	t.Helper()
	ok(t, db.Pool().QueryRow(ctxOf(t), "select id from uris where uri = convert_to($1, 'UTF8')", uri).Scan(&id))
	return id
}

// What came from a denied host by way of another is denied, too.
func TestDeniedHostBehindRedirect(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0")
	save(t, db, docdb.FetchResult{URIID: claim(t, db, "")["https://x/0"].ID, Body: []byte("secret"), Source: "https",
		ServedBy:  "evil.example:8443",
		FetchedAt: fetched, ParserVersion: 1, Registration: linked("Mallory")})
	ok(t, denydb.Deny(ctxOf(t), db, repute.Denial{Kind: repute.DenyHost, Value: "Evil.example.", Reason: "r"}, false))
	withheld(t, db, "redirected", "secret")
	if d := documentOf(t, db, w.id(0)); d.Status != repute.DocumentDenied {
		t.Errorf("shown: %+v", d)
	}
}
