package store_test

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/internal/rpctest"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// What a registrant does while it is called back stays, as on chain: only a
// parameter of the registration is written after it.
func TestCallbackOutlivesRegistration(t *testing.T) {
	t.Parallel()
	owner, other, id := rpctest.Account(1), rpctest.Account(2), token(0)
	wallet := func(value []byte) repute.Event {
		return repute.MetadataSet{TokenID: id, Key: "agentWallet", Value: value}
	}
	hint := repute.MetadataUpdate{TokenID: id}
	uri := repute.URIUpdated{TokenID: id, URI: "https://callback.example", UpdatedBy: owner}
	for name, c := range map[string]struct {
		between []repute.Event // mint and Registered
		wallet  common.Address
		uri     string
	}{
		"nothing":              {nil, owner, ""},
		"wallet unset":         {[]repute.Event{wallet(nil)}, nobody, ""},
		"wallet set":           {[]repute.Event{wallet(other[:])}, other, ""},
		"wallet unset and set": {[]repute.Event{wallet(nil), wallet(owner[:])}, owner, ""},
		"transfer to itself": {[]repute.Event{wallet(nil), repute.Transfer{From: owner, To: owner, TokenID: id}},
			nobody, ""},
		"URI":                    {[]repute.Event{hint, uri}, owner, uri.URI},
		"URI, empty parameter":   {[]repute.Event{hint, uri, hint}, owner, ""},
		"wallet after the URI":   {[]repute.Event{hint, uri, wallet(other[:])}, other, uri.URI},
		"and an empty parameter": {[]repute.Event{hint, uri, wallet(other[:]), hint}, other, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, ctx := testDB(t), ctxOf(t)
			ok(t, chaindb.AddChain(ctx, db, testChain(1)))
			events := txOf{repute.Transfer{To: owner, TokenID: id}}
			events = append(append(events, c.between...), repute.Registered{TokenID: id, Owner: owner},
				wallet(owner[:]))
			l := chainOf(events)
			ok(t, eventdb.Apply(ctx, db, batchOf(1, l.genesis, l.blocks)))
			a := rows(t, dump(t, ctx, db, 1), "agents")[0]
			if a.str("wallet") != address(c.wallet) || unhex(a.str("uri")) != c.uri {
				t.Errorf("wallet %q, uri %q", a.str("wallet"), unhex(a.str("uri")))
			}
		})
	}
}
