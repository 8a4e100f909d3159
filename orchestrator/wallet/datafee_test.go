package wallet_test

import (
	"encoding/json"
	"math/big"
	"testing"

	"repute/store/walletdb"
)

// below is an endpoint of a chain that takes a fee for data.
func (w *world) below(fee *big.Int) string {
	word := make([]byte, 32)
	fee.FillBytes(word)
	return w.proxy(nil, func(method string, a *message) {
		var r map[string]any
		switch {
		case method == "eth_getCode" && string(a.Result) == `"0x"`: // the oracle's
			a.Result = []byte(`"0x00"`)
		case method == "eth_call" && string(a.Result) == `"0x"`: // nothing else answers nothing here
			a.Result, _ = json.Marshal("0x" + new(big.Int).SetBytes(append([]byte{1}, word...)).Text(16)[1:])
		case method == "eth_getTransactionReceipt" && json.Unmarshal(a.Result, &r) == nil && r != nil:
			r["l1Fee"] = "0x" + fee.Text(16)
			a.Result, _ = json.Marshal(r)
		}
	})
}

// What a transaction's data costs on the chain below is kept before it is sent, counted once
// it is mined, and bounded by the same limit.
func TestDataFee(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	fee := big.NewInt(3_000_000_000_000_000)
	a, db := w.open(w.config(w.below(fee)))
	intent := w.pay("paid", "10")
	simulated, err := a.Simulate(t.Context(), origin, intent.Tx)
	ok(t, err)
	if most, _ := new(big.Int).SetString(simulated.FeeWei, 10); !simulated.OK ||
		most.Cmp(new(big.Int).Lsh(fee, 1)) <= 0 {
		t.Errorf("%s wei are kept, the data may cost twice %s: %+v", simulated.FeeWei, fee, simulated)
	}
	got := <-sending(t.Context(), a, intent)
	ok(t, got.err)
	if cost, _ := new(big.Int).SetString(got.sent.FeeWei, 10); cost.Cmp(fee) <= 0 {
		t.Errorf("%s wei are counted, the data alone cost %s", cost, fee)
	}
	in, err := walletdb.ReadIntent(t.Context(), db, "paid")
	ok(t, err)
	if all, _ := new(big.Int).SetString(intent.MaxGasWei, 10); in.State != walletdb.IntentConfirmed ||
		in.MaxFee.Cmp(all.Sub(all, new(big.Int).Lsh(fee, 1))) != 0 {
		t.Errorf("%s: %s wei are left for gas", in.State, in.MaxFee)
	}
	intent = w.pay("too dear", "10")
	intent.MaxGasWei = fee.String()
	if got := <-sending(t.Context(), a, intent); got.err == nil || w.paid() != 10 {
		t.Errorf("beyond its limit: %+v, %d wei", got, w.paid())
	}
}
