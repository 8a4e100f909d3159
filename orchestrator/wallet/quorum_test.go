package wallet_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/orchestrator/wallet/rules"
	"repute/store/walletdb"
)

// liar is an endpoint that answers one method with something else; nil: with nothing.
func (w *world) liar(of string, edit func(result json.RawMessage) any) string {
	return w.proxy(nil, func(method string, a *message) {
		if method != of || len(a.Result) == 0 {
			return
		}
		if to := edit(a.Result); to != nil {
			a.Result, _ = json.Marshal(to)
		}
	})
}

// header is a liar about one field of every block.
func (w *world) header(field, value string) string {
	return w.proxy(nil, func(method string, a *message) {
		var h map[string]any
		if strings.HasPrefix(method, "eth_getBlockBy") && json.Unmarshal(a.Result, &h) == nil && h != nil {
			h[field] = value
			a.Result, _ = json.Marshal(h)
		}
	})
}

// amidst are configurations with a liar before, between and behind two honest endpoints.
func (w *world) amidst(liar string) (out []wallet.ChainConfig) {
	honest := []string{w.proxy(nil, nil), w.d.RPCURL()}
	for place := range 3 {
		urls := append(append(append([]string{}, honest[:place]...), liar), honest[place:]...)
		c := w.config(urls...)
		c.Owner = keys.Config{KeyFile: w.keyFile(ownerAccount)}
		c.Patience = 50 * time.Millisecond
		out = append(out, c)
	}
	return out
}

// One lying endpoint among three decides nothing about money: what it says is outvoted where
// endpoints only estimate, and nothing is done where they contradict each other.
func TestOneLiarAmongThree(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	chain := w.d.Chain().ID
	decimals := common.FromHex("0x313ce567")
	never := func(name string, urls string, do func(*wallet.Wallet) error) {
		t.Helper()
		for place, c := range w.amidst(urls) {
			a, db := w.open(c)
			if err := do(a); !errors.Is(err, repute.ErrUnavailable) ||
				!strings.Contains(err.Error(), "endpoints disagree") {
				t.Errorf("%s, liar at %d: %v", name, place, err)
			}
			if in, err := walletdb.ReadIntent(t.Context(), db, name); !errors.Is(err, repute.ErrNotFound) {
				t.Errorf("%s, liar at %d: signed %s, %v", name, place, in.State, err)
			}
		}
	}
	send := func(name string) func(*wallet.Wallet) error {
		return func(a *wallet.Wallet) error { return second(a.Send(t.Context(), w.pay(name, "1"))) }
	}
	simulate := func(a *wallet.Wallet) error { return second(a.Simulate(t.Context(), origin, w.pay("x", "1").Tx)) }
	dear := w.header("baseFeePerGas", "0xba43b7400") // 50 gwei, below every ceiling
	never("base fee", dear, send("base fee"))
	never("simulated base fee", dear, simulate)
	never("owner's fee", dear, func(a *wallet.Wallet) error {
		return second(a.SendOwner(t.Context(), transaction.Intent{ID: "owner's fee", Origin: origin,
			Tx: transaction.Tx{ChainID: chain, Data: treasuryABI.PackPause()}}))
	})
	never("time", w.header("timestamp", "0x7fffffff"), simulate)
	word := func(json.RawMessage) any { return "0x" + strings.Repeat("0", 63) + "6" }
	never("decimals", w.liar("eth_call", word),
		func(a *wallet.Wallet) error { return second(a.Read(t.Context(), chain, w.token, decimals)) })
	never("view", w.liar("eth_call", word), func(a *wallet.Wallet) error {
		return second(a.Look(t.Context(), chain, w.treasury,
			wallet.View{To: w.treasury, Data: treasuryABI.PackOwner()}))
	})
	never("refusal", w.proxy(func(method string) *message {
		if method != "eth_call" {
			return nil
		}
		return &message{Error: []byte(`{"code":3,"message":"execution reverted"}`)}
	}, nil), send("refusal"))
	never("balance", w.liar("eth_getBalance", func(json.RawMessage) any { return "0x1" }), send("balance"))
	never("fee for data", w.liar("eth_getCode", func(result json.RawMessage) any {
		if string(result) == `"0x"` {
			return "0x00"
		}
		return nil
	}), send("fee for data"))
	never("logs",
		w.liar("eth_simulateV1", func(json.RawMessage) any { return []any{map[string]any{"calls": []any{}}} }),
		simulate)
}

// A block number of 64 bits is not smaller than others: what an endpoint invents is not taken for final.
func TestFinalizedOfLiar(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	liar := w.proxy(func(method string) *message {
		if method != "eth_getBlockByNumber" {
			return nil
		}
		return &message{Result: []byte(`{"number":"0xffffffffffffff00","hash":"0x` + strings.Repeat("11", 32) +
			`","timestamp":"0xffffffffffffff00"}`)}
	}, nil)
	for place, c := range w.amidst(liar) {
		a, _ := w.open(c)
		number, _, err := a.Finalized(t.Context(), w.d.Chain().ID)
		if head := w.d.Head().Number; err != nil || number > head {
			t.Errorf("liar at %d: block %d of %d is final: %v", place, number, head, err)
		}
	}
}

// What endpoints estimate is the honest ones' of three: the tip, gas and the nonce.
func TestOutvoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.mining()
	for name, liar := range map[string]string{
		// 5 gwei, the ceiling
		"tip":   w.liar("eth_maxPriorityFeePerGas", func(json.RawMessage) any { return "0x12a05f200" }),
		"gas":   w.liar("eth_estimateGas", func(json.RawMessage) any { return "0xf42400" }),
		"nonce": w.liar("eth_getTransactionCount", func(json.RawMessage) any { return "0x3b9aca00" }),
	} {
		for place, c := range w.amidst(liar) {
			id := name + string(rune('0'+place))
			honest, _ := w.open(w.config())
			usual, err := honest.Simulate(t.Context(), origin, w.pay(id, "1").Tx)
			ok(t, err)
			a, db := w.open(c)
			c, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			_, err = a.Send(c, w.pay(id, "1"))
			cancel()
			t.Log(id, err)
			in, err := walletdb.ReadIntent(t.Context(), db, id)
			ok(t, err)
			first := in.Attempts[0]
			if most := new(big.Int).Mul(first.FeeCap,
				new(big.Int).SetUint64(first.Gas)); most.Cmp(amount(usual.FeeWei)) > 0 ||
				first.TipCap.Cmp(big.NewInt(2e9)) > 0 || in.Nonce > 100 {
				t.Errorf("%s: %d gas for %s each, tip %s, nonce %d; usual are %s wei", id, first.Gas, first.FeeCap,
					first.TipCap,
					in.Nonce, usual.FeeWei)
			}
		}
	}
}

func amount(text string) *big.Int {
	v, _ := new(big.Int).SetString(text, 10)
	return v
}

// No fee passes the ceilings of its chain, whatever all endpoints say: neither of an agent's
// transaction nor of the owner's, simulated or not, nor of its replacements.
func TestCeilings(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := func(base, tip string) wallet.ChainConfig {
		c := w.config(w.proxy(nil, func(method string, a *message) {
			var h map[string]any
			switch {
			case method == "eth_maxPriorityFeePerGas":
				a.Result, _ = json.Marshal(tip)
			case strings.HasPrefix(method, "eth_getBlockBy") && json.Unmarshal(a.Result, &h) == nil && h != nil &&
				base != "":
				h["baseFeePerGas"] = base
				a.Result, _ = json.Marshal(h)
			}
		}))
		c.Owner = keys.Config{KeyFile: w.keyFile(ownerAccount)}
		c.StuckAfter = 20 * time.Millisecond
		return c
	}
	pause := transaction.Intent{ID: "pause", Origin: origin,
		Tx: transaction.Tx{ChainID: w.d.Chain().ID, Data: treasuryABI.PackPause()}}
	const thousands = "0x3635c9adc5dea00000" // 1,000 coins per gas
	dear, db := w.open(config(thousands, "0x1"))
	for what, err := range map[string]error{"pause": second(dear.SendOwner(t.Context(), pause)),
		"send": second(dear.Send(t.Context(), w.pay("send", "1")))} {
		if !errors.Is(err, repute.ErrLimited) ||
			!strings.Contains(err.Error(), "orchestrator.wallets[0].max_fee_per_gas") ||
			!strings.Contains(err.Error(), "raise it") {
			t.Errorf("%s at a base fee of 1,000 coins: %v", what, err)
		}
	}
	if s, err := dear.SimulateOwner(t.Context(), origin, pause.ChainID, pause.Data); err != nil || s.OK ||
		!strings.Contains(s.Reason, "max_fee_per_gas") || amount(s.FeeWei).Cmp(big.NewInt(2e16)) > 0 {
		t.Errorf("simulated %+v, %v", s, err)
	}
	if _, err := walletdb.ReadIntent(t.Context(), db, "pause"); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("signed: %v", err)
	}
	poor := config("", "0x1")
	poor.MaxTransactionFee = big.NewInt(1000)
	bound, _ := w.open(poor)
	if _, err := bound.SendOwner(t.Context(), pause); !errors.Is(err, repute.ErrLimited) ||
		!strings.Contains(err.Error(), "max_transaction_fee") {
		t.Errorf("over a ceiling in all: %v", err)
	}
	tipped := config("", thousands)
	tipped.MaxFeePerGas, tipped.MaxTip = big.NewInt(4e9), big.NewInt(2e9)
	greedy, db := w.open(tipped)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Second)
	defer cancel()
	r := sendingOwner(ctx, greedy, pause)
	until(t, "it is sent", func() bool {
		in, err := walletdb.ReadIntent(t.Context(), db, pause.ID)
		return err == nil && in.State == walletdb.IntentBroadcast
	})
	if got := <-r; got.err == nil || !strings.Contains(got.err.Error(), "the highest tip allow no higher fee") {
		t.Errorf("it waits for a replacement: %+v", got)
	}
	in, err := walletdb.ReadIntent(t.Context(), db, pause.ID)
	ok(t, err)
	for _, a := range in.Attempts {
		if a.TipCap.Cmp(tipped.MaxTip) > 0 || a.FeeCap.Cmp(tipped.MaxFeePerGas) > 0 {
			t.Errorf("signed for %s per gas, tip %s", a.FeeCap, a.TipCap)
		}
	}
}

// A ceiling of 0, or below, is a mistake of the configuration.
func TestCeilingsConfig(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]rules.Ceilings{"max_fee_per_gas": {MaxFeePerGas: new(big.Int)},
		"max_tip": {MaxTip: big.NewInt(-1)}, "max_transaction_fee": {MaxTransactionFee: new(big.Int)}} {
		_, err := wallet.Open(nil,
			wallet.Config{Chains: []wallet.ChainConfig{{ChainID: 1, RPC: []string{"http://127.0.0.1:1"}, Ceilings: c}}})
		if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), "orchestrator.wallets[0]."+field) {
			t.Errorf("%s: %v", field, err)
		}
	}
}
