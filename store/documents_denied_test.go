package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docdb"
	"repute/store/query"
)

func TestDenied(t *testing.T) {
	t.Parallel()
	const url = "https://bad.example/0"
	body := sha256.Sum256([]byte("secret"))
	for _, d := range []repute.Denial{{Kind: repute.DenySHA256, Value: fmt.Sprintf("0x%X", body)},
		{Kind: repute.DenyHost, Value: "Bad.Example"},
		{Kind: repute.DenyAgent, Value: "7:0"},
		{Kind: repute.DenyCID, Value: "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq"}} {
		t.Run(string(d.Kind), func(t *testing.T) {
			t.Parallel()
			db, w := queue(t, url)
			sqlExec(t, db, "update uris set host = 'bad.example:8443' where kind = 'https'")
			sqlExec(t, db, "insert into hosts values ('bad.example:8443', now())")
			save(t, db, docdb.FetchResult{URIID: claim(t, db, "bad.example:8443")[url].ID, Body: []byte("secret"),
				Source: "ipfs", FetchedAt: fetched,
				ParserVersion: 1, Registration: linked("Mallory"),
				CID: "bafkreibm6jg3ux5qumhcn2b3flc3tyu6dmlb4xa7u5bf44yegnrjhc4yeq"})
			d.Reason = "court order"
			ok(t, denydb.Deny(ctxOf(t), db, d, false))
			got := documentOf(t, db, w.id(0))
			if got.Status != repute.DocumentDenied || got.Detail != "court order" || got.Registration != nil ||
				got.SHA256 != [32]byte{} {
				t.Errorf("document %+v", got)
			}
			found, err := denydb.Denied(ctxOf(t), db, repute.Denial{Kind: repute.DenyHost, Value: "other"}, d)
			if err != nil || found == nil || found.Reason != "court order" {
				t.Errorf("found %+v, %v", found, err)
			}
			var denied *repute.DeniedError
			if _, err := docdb.Body(ctxOf(t), db, body); d.Kind != repute.DenyAgent &&
				(!errors.As(err, &denied) || !errors.Is(err, repute.ErrGone)) {
				t.Errorf("its bytes: %v", err)
			}
			if _, err := query.RequestRefresh(ctxOf(t), db, w.id(0)); !errors.As(err, &denied) {
				t.Errorf("refresh: %v", err)
			}
			sqlExec(t, db, "update uris set next_due = now() where kind = 'https'")
			if u := claim(t, db, "bad.example:8443")[url]; (u.Denied != nil) != (d.Kind != repute.DenySHA256) {
				t.Errorf("claimed %+v", u)
			}
			ok(t, denydb.Undeny(ctxOf(t), db, d.Kind, d.Value))
			if got := documentOf(t, db, w.id(0)); got.Status != repute.DocumentOK {
				t.Errorf("allowed again: %+v", got)
			}
			if err := denydb.Undeny(ctxOf(t), db, d.Kind, d.Value); !errors.Is(err, repute.ErrNotFound) {
				t.Errorf("allowed twice: %v", err)
			}
		})
	}
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		db := open(t)
		for _, d := range []repute.Denial{{Kind: "word", Value: "x", Reason: "r"},
			{Kind: repute.DenySHA256, Value: "12", Reason: "r"},
			{Kind: repute.DenyHost, Value: "https://x", Reason: "r"}, {Kind: repute.DenyAgent, Value: "5", Reason: "r"},
			{Kind: repute.DenyCID, Value: "Qm", Reason: "r"}, {Kind: repute.DenyHost, Value: "x", Reason: " "}} {
			if err := denydb.Deny(ctxOf(t), db, d, false); !errors.Is(err, repute.ErrInvalid) {
				t.Errorf("%+v: %v", d, err)
			}
		}
	})
}

func TestDenyDropsBytes(t *testing.T) {
	t.Parallel()
	db, _ := queue(t, "https://x/0")
	u := claim(t, db, "")["https://x/0"]
	read(t, db, u, "secret", nil)
	sum := sha256.Sum256([]byte("secret"))
	c, err := docdb.Body(ctxOf(t), db, sum)
	if err != nil || string(c.Body) != "secret" || c.Keccak != crypto.Keccak256Hash([]byte("secret")) || c.Size != 6 {
		t.Fatalf("content %+v, %v", c, err)
	}
	ok(t, denydb.Deny(ctxOf(t), db, repute.Denial{Kind: repute.DenySHA256, Value: fmt.Sprintf("%x", sum), Reason: "r"},
		true))
	read(t, db, u, "secret", nil) // nor do they come back
	ok(t, denydb.Undeny(ctxOf(t), db, repute.DenySHA256, fmt.Sprintf("%x", sum)))
	if _, err := docdb.Body(ctxOf(t), db, sum); !errors.Is(err, repute.ErrGone) {
		t.Errorf("dropped bytes: %v", err)
	}
}

// dropBodies makes one pass over all documents, and tells how much it freed.
func dropBodies(t *testing.T, db *store.DB, most int64) (freed int64) {
	t.Helper()
	sqlExec(t, db, "update cursors set due = now()")
	for more := true; more; {
		var n int64
		var err error
		n, more, err = docdb.DropBodies(ctxOf(t), db, most)
		ok(t, err)
		freed += n
	}
	return freed
}

func TestDropBodies(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "https://x/0", "https://x/1")
	u := claim(t, db, "")
	body := func(n int) string { return string(bytes.Repeat([]byte{byte('a' + n)}, 100)) }
	for n := range 4 {
		save(t, db, docdb.FetchResult{URIID: u["https://x/0"].ID, Body: []byte(body(n)), Source: "https",
			FetchedAt: fetched.Add(time.Duration(n) * time.Hour), ParserVersion: 1})
	}
	for _, step := range []struct{ most, freed int64 }{{400, 0}, {250, 200}, {0, 100}} { // what an agent shows stays
		if freed := dropBodies(t, db, step.most); freed != step.freed {
			t.Errorf("to keep %d freed %d, want %d", step.most, freed, step.freed)
		}
	}
	page, err := docdb.Versions(ctxOf(t), db, w.id(0), "", 3)
	if err != nil || len(page.Items) != 3 || !page.Items[0].Kept || page.Items[1].Kept || page.Items[0].Size != 100 ||
		page.Next == "" {
		t.Fatalf("versions %+v, %v", page, err)
	}
	rest, err := docdb.Versions(ctxOf(t), db, w.id(0), page.Next, 3)
	if err != nil || len(rest.Items) != 1 || rest.Items[0].SHA256 != sha256.Sum256([]byte(body(0))) || rest.Next != "" {
		t.Errorf("rest %+v, %v", rest, err)
	}
	// An agent that shows dropped bytes again makes them due.
	sqlExec(t, db, "update uris set sha256 = sha256($1), next_due = null where uri = 'https://x/1'", []byte(body(1)))
	steps, all := 0, 0
	for more := true; more; steps++ {
		var n int
		var err error
		n, more, err = docdb.RestoreBodies(ctxOf(t), db, 1)
		ok(t, err)
		all += n
	}
	if steps != 4 || all != 1 {
		t.Errorf("restored %d in %d steps", all, steps)
	}
	if n, more, err := docdb.RestoreBodies(ctxOf(t), db, 1); n != 0 || more || err != nil {
		t.Errorf("at once again: %d, %t, %v", n, more, err)
	}
}
