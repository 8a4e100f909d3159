package walletdb_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/walletdb"
)

func ok(t interface {
	Helper()
	Fatalf(format string, args ...any)
}, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

func open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(context.WithoutCancel(t.Context()), pgtest.New(t), store.Options{})
	ok(t, err)
	t.Cleanup(db.Close)
	return db
}

// signed returns a signed form with the next nonce.
func signed(id string, feeCap, tipCap *big.Int) func(context.Context, walletdb.Nonces) (walletdb.IntentAttempt, error) {
	return func(_ context.Context, n walletdb.Nonces) (walletdb.IntentAttempt, error) {
		hash := common.BytesToHash([]byte(id))
		return walletdb.IntentAttempt{Hash: hash, Raw: hash[:], Nonce: n.Next, Gas: 21000, FeeCap: feeCap,
			TipCap: tipCap}, nil
	}
}

// addIntent stores an intent of account 1 on chain 7 that sends one wei.
func addIntent(t testing.TB, db *store.DB, id string) walletdb.Intent {
	t.Helper()
	in, err := walletdb.AddIntent(t.Context(), db, walletdb.Intent{ID: id, Run: "r", Task: "t", ChainID: 7,
		From: common.Address{1}, To: common.Address{2}, Value: big.NewInt(1)}, signed(id, big.NewInt(1), big.NewInt(1)))
	ok(t, err)
	return in
}

// mined returns the end of a transaction in a block.
func mined(block uint64) walletdb.Mining {
	return walletdb.Mining{Hash: common.Hash{1}, Block: block, BlockHash: common.BigToHash(new(big.Int).SetUint64(block)),
		GasUsed: 21000, Fee: big.NewInt(5), Logs: json.RawMessage(`[{"a": 1}]`)}
}

// Amounts of up to 256 bits come back as they were stored, whatever form Postgres gives them, and no limit stays none.
func TestAmountsAreExact(t *testing.T) {
	t.Parallel()
	db, ctx := open(t), t.Context()
	amount := rapid.Custom(func(t *rapid.T) *big.Int {
		v := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 31).Draw(t, "bytes"))
		zeros := new(big.Int).Exp(big.NewInt(10), big.NewInt(rapid.Int64Range(0, 3).Draw(t, "zeros")), nil)
		return v.Mul(v, zeros) // Postgres leaves out groups of zeros at the end
	})
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		id := fmt.Sprint("intent ", n)
		in := walletdb.Intent{ID: id, ChainID: 7, From: common.Address{1}, To: common.Address{2},
			Value: amount.Draw(t, "value"), Data: rapid.SliceOfN(rapid.Byte(), 0, 3).Draw(t, "data")}
		if rapid.Bool().Draw(t, "bounded") {
			in.MaxFee = amount.Draw(t, "most")
		}
		feeCap, tipCap := amount.Draw(t, "fee cap"), amount.Draw(t, "tip cap")
		_, err := walletdb.AddIntent(ctx, db, in, signed(id, feeCap, tipCap))
		ok(t, err)
		end := mined(9)
		end.Fee = amount.Draw(t, "fee")
		ok(t, walletdb.MarkIntent(ctx, db, id, walletdb.IntentMined, end, ""))
		got, err := walletdb.ReadIntent(ctx, db, id)
		ok(t, err)
		for what, pair := range map[string][2]*big.Int{"value": {got.Value, in.Value}, "most": {got.MaxFee, in.MaxFee},
			"fee": {got.Mined.Fee, end.Fee}, "fee cap": {got.Attempts[0].FeeCap, feeCap},
			"tip cap": {got.Attempts[0].TipCap, tipCap}} {
			if (pair[0] == nil) != (pair[1] == nil) || pair[0] != nil && pair[0].Cmp(pair[1]) != 0 {
				t.Errorf("%s is %v, stored was %v", what, pair[0], pair[1])
			}
		}
		if string(got.Data) != string(in.Data) || string(got.Mined.Logs) != string(end.Logs) {
			t.Errorf("data %x, logs %s", got.Data, got.Mined.Logs)
		}
	})
}

// A final intent changes only when its block leaves the chain: then it waits to be mined again.
func TestFinalIntents(t *testing.T) {
	t.Parallel()
	db := open(t)
	for _, state := range []walletdb.IntentState{walletdb.IntentConfirmed, walletdb.IntentReverted, walletdb.IntentFailed} {
		id := string(state)
		addIntent(t, db, id)
		m := mined(9)
		if state == walletdb.IntentFailed {
			m = walletdb.Mining{}
		}
		ok(t, walletdb.MarkIntent(t.Context(), db, id, state, m, "why"))
		ok(t, walletdb.MarkIntent(t.Context(), db, id, walletdb.IntentBroadcast, walletdb.Mining{}, ""))
		same, err := walletdb.AddAttempt(t.Context(), db, id, 1,
			func(context.Context, walletdb.Intent) (walletdb.IntentAttempt, error) {
				return walletdb.IntentAttempt{}, errors.New("signed again")
			})
		if ok(t, err); same.State != state || same.Reason != "why" || same.Mined.Block != m.Block {
			t.Errorf("%s: %+v", state, same)
		}
		ok(t, walletdb.ReopenIntent(t.Context(), db, id, common.Hash{99}))
		if same, err = walletdb.ReadIntent(t.Context(), db, id); err != nil || same.State != state {
			t.Errorf("%s after another block left: %+v, %v", state, same, err)
		}
		ok(t, walletdb.ReopenIntent(t.Context(), db, id, m.BlockHash))
		again, err := walletdb.ReadIntent(t.Context(), db, id)
		want := walletdb.IntentBroadcast
		if state == walletdb.IntentFailed {
			want = state
		}
		if ok(t, err); again.State != want || again.Mined.Block != 0 || again.Mined.Fee != nil {
			t.Errorf("%s after its block left: %+v", state, again)
		}
	}
	settled, err := walletdb.SettledIntents(t.Context(), db, 7, 0)
	if ok(t, err); len(settled) != 0 {
		t.Errorf("settled: %+v", settled)
	}
	open, err := walletdb.OpenIntents(t.Context(), db, 7, "")
	if ok(t, err); len(open) != 2 || open[0].ID != "confirmed" || open[1].ID != "reverted" {
		t.Errorf("open: %+v", open)
	}
	if after, err := walletdb.OpenIntents(t.Context(), db, 7, "confirmed"); err != nil || len(after) != 1 {
		t.Errorf("open after one: %+v, %v", after, err)
	}
}

// An act that ended signs nothing more, and one whose transaction is signed does not end early unless that failed.
func TestActsAndTheirIntents(t *testing.T) {
	t.Parallel()
	db := open(t)
	act := walletdb.Act{ID: "act", Key: "key", Kind: "policy", By: "me", ChainID: 7, Agent: "a"}
	first, added, err := walletdb.AddAct(t.Context(), db, act)
	if ok(t, err); !added || !first.Ended.IsZero() {
		t.Fatalf("%+v, added %t", first, added)
	}
	act.ID = "other"
	if same, added, err := walletdb.AddAct(t.Context(), db, act); err != nil || added || same.ID != "act" {
		t.Errorf("the same key: %+v, added %t, %v", same, added, err)
	}
	for name, read := range map[string]func() (walletdb.Act, error){
		"id":  func() (walletdb.Act, error) { return walletdb.ReadAct(t.Context(), db, "act") },
		"key": func() (walletdb.Act, error) { return walletdb.ActOfKey(t.Context(), db, "key") }} {
		if got, err := read(); err != nil || got.ID != "act" || got.Kind != "policy" {
			t.Errorf("by %s: %+v, %v", name, got, err)
		}
	}
	for _, err := range []error{func() error { _, err := walletdb.ReadAct(t.Context(), db, "none"); return err }(),
		func() error { _, err := walletdb.ActOfKey(t.Context(), db, "none\x00"); return err }()} {
		if !errors.Is(err, repute.ErrNotFound) {
			t.Errorf("an unknown act: %v", err)
		}
	}
	alone := walletdb.Act{ID: "second", Kind: "policy", ChainID: 7, Agent: "a", Alone: true}
	if _, _, err := walletdb.AddAct(t.Context(), db, alone); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("another act of the kind is open: %v", err)
	}
	addIntent(t, db, "act/1")
	if err := walletdb.FailAct(t.Context(), db, "act", "act/1", "no answer"); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("its transaction is signed: %v", err)
	}
	ok(t, walletdb.MarkIntent(t.Context(), db, "act/1", walletdb.IntentFailed, walletdb.Mining{}, "replaced"))
	for _, why := range []string{"no answer", "later"} {
		ok(t, walletdb.FailAct(t.Context(), db, "act", "act/1", why))
	}
	ok(t, walletdb.EndAct(t.Context(), db, "act", json.RawMessage(`1`), nil))
	if got, err := walletdb.ReadAct(t.Context(), db, "act"); err != nil || got.Error != "no answer" || got.Ended.IsZero() ||
		string(got.Result) == "1" {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = walletdb.AddIntent(t.Context(), db, walletdb.Intent{ID: "act/2", ChainID: 7, From: common.Address{1},
		Value: new(big.Int)}, signed("act/2", big.NewInt(1), big.NewInt(1)))
	if !errors.Is(err, repute.ErrConflict) {
		t.Errorf("an intent of an act that ended: %v", err)
	}
	if _, added, err := walletdb.AddAct(t.Context(), db, alone); err != nil || !added {
		t.Errorf("the other act has ended: added %t, %v", added, err)
	}
}

// The function of a pair of an allow-list is the one that the act wrote which ended last.
func TestCallFunctions(t *testing.T) {
	t.Parallel()
	db := open(t)
	target, selector := common.Address{9}, [4]byte{1, 2, 3, 4}
	for i, text := range []string{"old(uint256)", "new(uint256)"} {
		id := fmt.Sprint("act ", i)
		_, _, err := walletdb.AddAct(t.Context(), db, walletdb.Act{ID: id, Kind: "policy", ChainID: 7, Agent: "a"})
		ok(t, err)
		ok(t, walletdb.EndAct(t.Context(), db, id, nil, []walletdb.CallFunction{
			{Target: common.Address{8}, Selector: selector, Text: "other()"}, {Target: target, Selector: selector, Text: text}}))
	}
	for _, c := range []struct {
		chain    uint64
		target   common.Address
		selector [4]byte
		want     string
	}{{7, target, selector, "new(uint256)"}, {8, target, selector, ""}, {7, common.Address{7}, selector, ""},
		{7, target, [4]byte{}, ""}, {7, common.Address{8}, selector, "other()"}} {
		got, err := walletdb.ReadCallFunction(t.Context(), db, c.chain, c.target, c.selector)
		if ok(t, err); got != c.want {
			t.Errorf("%d %s %x: %q, want %q", c.chain, c.target, c.selector, got, c.want)
		}
	}
}

// purchase is a purchase of a task from a host.
func purchase(id, host, task string, worth repute.Micros) walletdb.Purchase {
	return walletdb.Purchase{ID: id, By: "me", ChainID: 7, Agent: "a", Request: "GET " + host, Host: host, Worth: worth,
		Task: task, Payment: json.RawMessage(`{}`), Expires: time.Now().Add(time.Hour)}
}

// Each cap refuses the purchase that would pass it, with the figures; refused purchases count for nothing, and a
// purchase that is stored is returned, with the payment that alone may be sent.
func TestCaps(t *testing.T) {
	t.Parallel()
	db := open(t)
	caps := walletdb.Caps{Host: 100, Day: 150, Task: 120}
	add := func(p walletdb.Purchase) error { _, err := walletdb.AddPurchase(t.Context(), db, p, caps); return err }
	refused := purchase("refused", "a", "t", 1_000_000)
	refused.Refused = "too much"
	ok(t, add(refused))
	ok(t, add(purchase("1", "a", "t", 100)))
	for _, c := range []struct {
		p    walletdb.Purchase
		want string
	}{{purchase("2", "a", "other", 1), "to host a in 24 hours"}, {purchase("2", "b", "t", 21), "by task t"},
		{purchase("2", "b", "", 51), "to all hosts in 24 hours"}} {
		var over *walletdb.CapError
		if err := add(c.p); !errors.As(err, &over) || over.What != c.want || !errors.Is(err, repute.ErrLimited) {
			t.Errorf("%s of %s for %q: %v, want %q", c.p.Worth, c.p.Host, c.p.Task, err, c.want)
		}
	}
	other := purchase("1", "a", "t", 100)
	other.Payment = json.RawMessage(`{"another": "signature"}`)
	if got, err := walletdb.AddPurchase(t.Context(), db, other, caps); err != nil || string(got.Payment) != `{}` {
		t.Errorf("a stored purchase: %+v, %v", got, err)
	}
	ok(t, add(purchase("2", "b", "t", 20)))
	sums, agents, err := walletdb.SumPurchases(t.Context(), db, 5)
	if want := (walletdb.PurchaseSums{Day: 120, Week: 120, Count: 2}); err != nil || sums != want || len(agents) != 1 ||
		agents[0].PurchaseSums != want {
		t.Errorf("sums %+v, %+v, %v", sums, agents, err)
	}
}

// Purchases at once pass no cap together.
func TestCapsOfManyAtOnce(t *testing.T) {
	t.Parallel()
	const many, most = 20, 6
	db := open(t)
	errs := make([]error, many)
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			_, errs[i] = walletdb.AddPurchase(t.Context(), db, purchase(fmt.Sprint(i), fmt.Sprint("host ", i), "t", 10),
				walletdb.Caps{Host: 100, Day: 10 * most, Task: 1000})
		})
	}
	all.Wait()
	paid := 0
	for _, err := range errs {
		if err == nil {
			paid++
		} else if !errors.Is(err, repute.ErrLimited) {
			t.Error(err)
		}
	}
	if paid != most {
		t.Errorf("%d purchases, want %d", paid, most)
	}
}

// A purchase is found again by its request while its payment may be settled, and ends once.
func TestPurchaseEndsOnce(t *testing.T) {
	t.Parallel()
	db := open(t)
	caps := walletdb.Caps{Host: 1000, Day: 1000, Task: 1000}
	late := purchase("late", "a", "", 1)
	late.Expires = time.Now().Add(-time.Second)
	ofRun := purchase("of a run", "a", "", 1)
	ofRun.Call = "r/s/k"
	for _, p := range []walletdb.Purchase{late, ofRun} {
		_, err := walletdb.AddPurchase(t.Context(), db, p, caps)
		ok(t, err)
	}
	if p, err := walletdb.OpenPurchase(t.Context(), db, "a", "GET a"); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("none is open: %+v, %v", p, err)
	}
	_, err := walletdb.AddPurchase(t.Context(), db, purchase("open", "a", "", 1), caps)
	ok(t, err)
	if p, err := walletdb.OpenPurchase(t.Context(), db, "a", "GET a"); err != nil || p.ID != "open" {
		t.Errorf("open purchase: %+v, %v", p, err)
	}
	ok(t, walletdb.EndPurchase(t.Context(), db, "open", json.RawMessage(`{"tx":1}`), ""))
	ok(t, walletdb.EndPurchase(t.Context(), db, "open", nil, "later"))
	p, err := walletdb.ReadPurchase(t.Context(), db, "open")
	if ok(t, err); string(p.Receipt) != `{"tx":1}` || p.Error != "" || p.Ended.IsZero() {
		t.Errorf("%+v", p)
	}
	if list, err := walletdb.Purchases(t.Context(), db, 2); err != nil || len(list) != 2 || list[0].ID != "open" {
		t.Errorf("purchases %+v, %v", list, err)
	}
}

// Whatever a server wrote into a payment, the payment comes back byte for byte, and other purchases are still added,
// found and summed up.
func TestPaymentsOfHostileServers(t *testing.T) {
	t.Parallel()
	db := open(t)
	caps := walletdb.Caps{Host: 1000, Day: 1000, Task: 1000}
	for i, payment := range []string{`{"resource":{"description":"a\u0000b"}}`, `{"extra":"\ud800"}`, `{"x":1e999999}`,
		`"a text"`, `{"a": "<&>",   "b":"\u00e9é\\"}`, `null`, `[]`} {
		id := fmt.Sprint("purchase ", i)
		p := purchase(id, "a", "t", 1)
		p.Payment = json.RawMessage(payment)
		_, err := walletdb.AddPurchase(t.Context(), db, p, caps)
		ok(t, err)
		for name, read := range map[string]func() (walletdb.Purchase, error){
			"by its id": func() (walletdb.Purchase, error) { return walletdb.ReadPurchase(t.Context(), db, id) },
			"by its request": func() (walletdb.Purchase, error) {
				return walletdb.OpenPurchase(t.Context(), db, "a", "GET a")
			},
			"added again": func() (walletdb.Purchase, error) {
				return walletdb.AddPurchase(t.Context(), db, purchase(id, "a", "t", 1), caps)
			}} {
			got, err := read()
			if ok(t, err); got.ID != id || string(got.Payment) != payment {
				t.Errorf("%s: payment %s of %s, stored was %s", name, got.Payment, got.ID, payment)
			}
		}
	}
	if sums, _, err := walletdb.SumPurchases(t.Context(), db, 5); err != nil || sums.Count != 7 || sums.Day != 7 {
		t.Errorf("sums %+v, %v", sums, err)
	}
	_, err := db.Pool().Exec(t.Context(), `update acts set request = (request::jsonb || '{"payment": {"old": true}}')::json
		where id = 'purchase 6'`)
	ok(t, err)
	got, err := walletdb.ReadPurchase(t.Context(), db, "purchase 6")
	if ok(t, err); string(got.Payment) != `{"old": true}` {
		t.Errorf("a payment of an earlier version: %s", got.Payment)
	}
}
