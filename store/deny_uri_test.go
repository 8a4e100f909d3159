package store_test

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docdb"
	"repute/store/query"
	"repute/store/searchdb"
)

// What is denied is not shown where the URI is the content, by whatever points to it, and
// is shown again when the denial ends.
func TestDeniedURIWithoutContent(t *testing.T) {
	t.Parallel()
	body := `{"name":"Libellous"}`
	for uri, rest := range map[string]string{
		"data:application/json," + body:           "data:application/json,",
		"DATA:application/json;charset=u," + body: "DATA:application/json;charset=u,",
		" " + body:                             "",
		"https://agent.example/Libellous.json": "https://agent.example/Libellous.json",
	} {
		t.Run(rest, func(t *testing.T) {
			t.Parallel()
			db, w := queue(t, uri)
			w.mine(repute.NewFeedback{TokenID: tokenID(0), Client: person(9), Index: 1, Value: big.NewInt(1), URI: uri},
				repute.ResponseAppended{TokenID: tokenID(0), Client: person(9), Index: 1, Responder: person(8),
					URI: uri},
				repute.ValidationRequest{TokenID: tokenID(0), Validator: person(7), URI: uri,
					RequestHash: common.Hash{1}},
				repute.ValidationResponse{TokenID: tokenID(0), Validator: person(7), URI: uri,
					RequestHash: common.Hash{1},
					Response:    5})
			w.store(t, db, w.tip().Number)
			save(t, db, docdb.FetchResult{URIID: claim(t, db, "")[uri].ID, Body: []byte(body), Source: "data",
				FetchedAt: time.Now(), ParserVersion: 1, Registration: linked("Libellous")})
			if got := shownURIs(t, db, w.id(0)); got != strings.Repeat(uri+"|", 6) {
				t.Fatalf("before: %s", got)
			}
			d := repute.Denial{Kind: repute.DenySHA256, Value: fmt.Sprintf("%x", sha256.Sum256([]byte(body))),
				Reason: "court order"}
			ok(t, denydb.Deny(ctxOf(t), db, d, false))
			if got := shownURIs(t, db, w.id(0)); got != strings.Repeat(rest+"|", 6) {
				t.Errorf("denied: %s", got)
			}
			ok(t, denydb.Undeny(ctxOf(t), db, d.Kind, d.Value))
			if got := shownURIs(t, db, w.id(0)); got != strings.Repeat(uri+"|", 6) {
				t.Errorf("allowed again: %s", got)
			}
		})
	}
}

// An agent that is denied has no URI with content either, now and before.
func TestDeniedAgentURI(t *testing.T) {
	t.Parallel()
	db, w := queue(t, "data:,Libellous")
	ok(t, denydb.Deny(ctxOf(t), db, repute.Denial{Kind: repute.DenyAgent, Value: "7:0", Reason: "court order"}, false))
	a, _, err := query.Agent(ctxOf(t), db, w.id(0), latest)
	ok(t, err)
	page, err := docdb.Versions(ctxOf(t), db, w.id(0), "", 10)
	ok(t, err)
	if a.URI != "data:," || a.URISize != int64(len("data:,Libellous")) || page.Items[0].URI != "data:," {
		t.Errorf("%q of %d, %q", a.URI, a.URISize, page.Items[0].URI)
	}
}

// shownURIs are those that readers show of an agent: its own, that of a list, of its
// versions, of a rating, of a response and of a validation.
func shownURIs(t *testing.T, db *store.DB, id repute.AgentID) string {
	t.Helper()
	a, _, err := query.Agent(ctxOf(t), db, id, latest)
	ok(t, err)
	list, err := searchdb.Agents(ctxOf(t), db, searchdb.AgentFilter{Limit: 10})
	ok(t, err)
	versions, err := docdb.Versions(ctxOf(t), db, id, "", 10)
	ok(t, err)
	ratings, err := query.Feedback(ctxOf(t), db, id, query.FeedbackFilter{Limit: 10, At: latest})
	ok(t, err)
	validations, err := query.Validations(ctxOf(t), db, id, query.ValidationFilter{Limit: 10, At: latest})
	ok(t, err)
	return strings.Join([]string{a.URI, list.Items[0].URI, versions.Items[0].URI, ratings.Items[0].URI,
		ratings.Items[0].Responses[0].URI,
		validations.Items[0].RequestURI, ""}, "|")
}
