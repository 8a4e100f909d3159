package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"repute"
	"repute/store/walletdb"
)

func anIntent(id string) walletdb.Intent {
	return walletdb.Intent{ID: id, Run: "run_1", Task: "task_1", Agent: "payer", ChainID: 7,
		From: common.HexToAddress("0xaa"), To: common.HexToAddress("0xbb"),
		Value: big.NewInt(5), Data: []byte{1, 2}, MaxFee: big.NewInt(900)}
}

// signedAs makes a signed form that is told from others by its id, nonce and fee.
func signedAs(id string, nonce uint64, fee int64) walletdb.IntentAttempt {
	raw := fmt.Append(nil, id, nonce, fee)
	return walletdb.IntentAttempt{Hash: crypto.Keccak256Hash(raw), Raw: raw, Nonce: nonce, Gas: 21000,
		FeeCap: big.NewInt(fee), TipCap: big.NewInt(1)}
}

func takeNonce(id string) func(context.Context, walletdb.Nonces) (walletdb.IntentAttempt, error) {
	return func(_ context.Context, n walletdb.Nonces) (walletdb.IntentAttempt, error) {
		return signedAs(id, n.Next, 10), nil
	}
}

// TestIntentOnce stores an intent, gets it back unchanged whatever comes later under its
// id, and refuses another transaction there.
func TestIntentOnce(t *testing.T) {
	t.Parallel()
	db := testDB(t)
	in := anIntent("a")
	first, err := walletdb.AddIntent(t.Context(), db, in,
		func(_ context.Context, n walletdb.Nonces) (walletdb.IntentAttempt, error) {
			if n.Next != 0 {
				t.Errorf("next nonce %d", n.Next)
			}
			return signedAs("a", 41, 10), nil // the chain is ahead of what is stored
		})
	ok(t, err)
	if first.Nonce != 41 || first.State != walletdb.IntentSigned || len(first.Attempts) != 1 ||
		first.Value.Int64() != 5 || first.MaxFee.Int64() != 900 ||
		first.From != in.From || first.Agent != "payer" || first.To != in.To || string(first.Data) != string(in.Data) ||
		first.Attempts[0].FeeCap.Int64() != 10 {
		t.Errorf("%+v", first)
	}
	again, err := walletdb.AddIntent(t.Context(), db, in,
		func(context.Context, walletdb.Nonces) (walletdb.IntentAttempt,
			error) {
			return walletdb.IntentAttempt{}, errors.New("signed twice")
		})
	ok(t, err)
	if again.Nonce != 41 || again.Attempts[0].Hash != first.Attempts[0].Hash {
		t.Errorf("%+v", again)
	}
	in.Value = big.NewInt(6)
	if _, err := walletdb.AddIntent(t.Context(), db, in, takeNonce("a")); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("another transaction: %v", err)
	}
	if _, err := walletdb.ReadIntent(t.Context(), db, "b"); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("unknown: %v", err)
	}
}

// TestIntentNonces takes nonces from many sides at once, some of which fail to sign.
func TestIntentNonces(t *testing.T) {
	t.Parallel()
	db := testDB(t)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			id := fmt.Sprint("i", i)
			_, err := walletdb.AddIntent(t.Context(), db, anIntent(id),
				func(_ context.Context, n walletdb.Nonces) (walletdb.IntentAttempt, error) {
					if i%4 == 3 {
						return walletdb.IntentAttempt{}, repute.ErrUnavailable
					}
					return signedAs(id, n.Next, 10), nil
				})
			if (i%4 == 3) != errors.Is(err, repute.ErrUnavailable) {
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	wg.Wait()
	all, err := walletdb.IntentsBetween(t.Context(), db, 7, common.HexToAddress("0xaa"), 0, 100)
	ok(t, err)
	var nonces []uint64
	for _, i := range all {
		nonces = append(nonces, i.Nonce)
	}
	if len(nonces) != 30 || nonces[0] != 0 || nonces[29] != 29 || !slices.IsSorted(nonces) {
		t.Errorf("nonces %v", nonces)
	}
	if _, err := walletdb.AddIntent(t.Context(), db, anIntent("late"),
		func(context.Context, walletdb.Nonces) (walletdb.IntentAttempt, error) {
			return signedAs("late", 3, 10), nil
		}); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("a nonce twice: %v", err)
	}
}

// TestFreeNonce finds the gap that blocks an account, once nothing young is behind it.
func TestFreeNonce(t *testing.T) {
	t.Parallel()
	db := testDB(t)
	free := func(id string, from, take uint64, quiet time.Duration) (free uint64) {
		t.Helper()
		_, err := walletdb.AddIntent(t.Context(), db, anIntent(id),
			func(ctx context.Context, n walletdb.Nonces) (a walletdb.IntentAttempt, err error) {
				free, err = n.Free(ctx, from, quiet)
				return signedAs(id, take, 10), err
			})
		ok(t, err)
		return free
	}
	for _, c := range []struct {
		id         string
		from, take uint64
		quiet      time.Duration
		want       uint64
	}{{"a", 0, 3, 0, 0}, {"b", 0, 4, time.Hour, 4}, {"c", 0, 0, 0, 0}, {"d", 0, 1, 0, 1}, {"e", 2, 900, 0, 2},
		{"f", 4, 5, 0, 5}, {"g", 2, 2, 0, 2}, {"h", 0, 6, 0, 6}, {"i", 0, 7, time.Hour, 901}} {
		if got := free(c.id, c.from, c.take, c.quiet); got != c.want {
			t.Errorf("%s: %d is free from %d on, not %d", c.id, got, c.from, c.want)
		}
	}
	m := walletdb.Mining{Hash: common.HexToHash("0x1"), Block: 1, BlockHash: common.HexToHash("0x2"), GasUsed: 1,
		Fee: big.NewInt(1)}
	ok(t, walletdb.MarkIntent(t.Context(), db, "e", walletdb.IntentConfirmed, m, ""))
	if got := free("j", 0, 1000, 0); got != 901 {
		t.Errorf("below one that was mined %d is free", got)
	}
}

// TestNonceOfFailed gives the nonce of a failed intent away again, once that is old: the
// transaction that had taken it may have left the chain. One that did not fail keeps its own.
func TestNonceOfFailed(t *testing.T) {
	t.Parallel()
	db := testDB(t)
	add := func(id string, quiet time.Duration) (took uint64) {
		t.Helper()
		in, err := walletdb.AddIntent(t.Context(), db, anIntent(id),
			func(ctx context.Context, n walletdb.Nonces) (walletdb.IntentAttempt, error) {
				free, err := n.Free(ctx, 0, quiet)
				return signedAs(id, free, 10), err
			})
		ok(t, err)
		return in.Nonce
	}
	for i, id := range []string{"a", "b", "c"} {
		if n := add(id, 0); n != uint64(i) {
			t.Fatalf("%s took nonce %d", id, n)
		}
	}
	ok(t, walletdb.MarkIntent(t.Context(), db, "b", walletdb.IntentFailed, walletdb.Mining{}, "taken"))
	if n := add("d", time.Hour); n != 3 {
		t.Errorf("right after b had failed d took nonce %d", n)
	}
	if n := add("e", 0); n != 1 {
		t.Errorf("e took nonce %d, not that of b", n)
	}
	if n := add("f", 0); n != 4 {
		t.Errorf("f took nonce %d", n)
	}
	ok(t, walletdb.MarkIntent(t.Context(), db, "e", walletdb.IntentFailed, walletdb.Mining{}, "taken"))
	if n := add("g", 0); n != 1 {
		t.Errorf("g took nonce %d, not that of two that failed", n)
	}
	if in, err := walletdb.ReadIntent(t.Context(), db, "b"); err != nil || in.State != walletdb.IntentFailed ||
		in.Nonce != 1 {
		t.Errorf("b is %+v, %v", in, err)
	}
}

// TestIntentAttempts replaces a signed form once, at its nonce only, and never after the end.
func TestIntentAttempts(t *testing.T) {
	t.Parallel()
	db := testDB(t)
	_, err := walletdb.AddIntent(t.Context(), db, anIntent("a"), takeNonce("a"))
	ok(t, err)
	bump := func(fee int64) func(context.Context, walletdb.Intent) (walletdb.IntentAttempt, error) {
		return func(_ context.Context, i walletdb.Intent) (walletdb.IntentAttempt, error) {
			return signedAs("a", i.Nonce, fee), nil
		}
	}
	ok(t, walletdb.MarkIntent(t.Context(), db, "a", walletdb.IntentBroadcast, walletdb.Mining{}, ""))
	out, err := walletdb.AddAttempt(t.Context(), db, "a", 1, bump(20))
	ok(t, err)
	if len(out.Attempts) != 2 || out.Attempts[1].FeeCap.Int64() != 20 || out.State != walletdb.IntentSigned {
		t.Errorf("%+v", out)
	}
	if out, err = walletdb.AddAttempt(t.Context(), db, "a", 1, bump(30)); err != nil || len(out.Attempts) != 2 {
		t.Errorf("a late bump: %+v, %v", out, err)
	}
	if _, err = walletdb.AddAttempt(t.Context(), db, "a", 2,
		func(context.Context, walletdb.Intent) (walletdb.IntentAttempt, error) {
			return signedAs("a", 9, 40), nil
		}); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("another nonce: %v", err)
	}
	m := walletdb.Mining{Hash: out.Attempts[0].Hash, Block: 12, BlockHash: common.HexToHash("0x12"), GasUsed: 21000,
		Fee: big.NewInt(210000), Logs: []byte(`[{"a":"\u0000"}]`)}
	ok(t, walletdb.MarkIntent(t.Context(), db, "a", walletdb.IntentMined, m, ""))
	// its block was replaced
	ok(t, walletdb.MarkIntent(t.Context(), db, "a", walletdb.IntentBroadcast, walletdb.Mining{}, ""))
	if out, err = walletdb.ReadIntent(t.Context(), db, "a"); err != nil || out.Mined.Hash != (common.Hash{}) ||
		out.Mined.Fee != nil {
		t.Errorf("%+v, %v", out, err)
	}
	ok(t, walletdb.MarkIntent(t.Context(), db, "a", walletdb.IntentConfirmed, m, ""))
	ok(t, walletdb.MarkIntent(t.Context(), db, "a", walletdb.IntentFailed, walletdb.Mining{}, "too late"))
	out, err = walletdb.AddAttempt(t.Context(), db, "a", 2, bump(50))
	ok(t, err)
	if out.State != walletdb.IntentConfirmed || out.Reason != "" || len(out.Attempts) != 2 || out.Mined.Block != 12 ||
		out.Mined.BlockHash != m.BlockHash ||
		out.Mined.Fee.Int64() != 210000 || string(out.Mined.Logs) != string(m.Logs) {
		t.Errorf("%+v", out)
	}
}
