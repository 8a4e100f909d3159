package x402

import (
	"bytes"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"pgregory.net/rapid"
)

// settlementABI has the functions by which payments are settled, as their contracts declare them.
const settlementABI = `[
	{"type":"function","name":"aggregate3","inputs":[{"name":"calls","type":"tuple[]","components":[
		{"name":"target","type":"address"},{"name":"allowFailure","type":"bool"},{"name":"callData","type":"bytes"}]}]},
	{"type":"function","name":"settle","inputs":[{"name":"permit","type":"tuple","components":[
		{"name":"permitted","type":"tuple","components":[{"name":"token","type":"address"},
			{"name":"amount","type":"uint256"}]},
		{"name":"nonce","type":"uint256"},{"name":"deadline","type":"uint256"}]},
		{"name":"owner","type":"address"},{"name":"witness","type":"tuple","components":[
		{"name":"to","type":"address"},{"name":"validAfter","type":"uint256"}]},{"name":"signature","type":"bytes"}]},
	{"type":"function","name":"transferWithAuthorization","inputs":[{"name":"from","type":"address"},
		{"name":"to","type":"address"},{"name":"value","type":"uint256"},{"name":"validAfter","type":"uint256"},
		{"name":"validBefore","type":"uint256"},{"name":"nonce","type":"bytes32"},{"name":"signature","type":"bytes"}]}]`

// anyAddress draws an address.
func anyAddress(t *rapid.T, name string) common.Address {
	return common.BytesToAddress(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, name))
}

// anyAmount draws an amount of any size.
func anyAmount(t *rapid.T, name string) (a Amount) {
	a.n.SetBytes(rapid.SliceOfN(rapid.Byte(), 0, 32).Draw(t, name))
	return a
}

// anyPermit draws a permit, of the scheme upto where upto is true.
func anyPermit(t *rapid.T, upto bool) *Permit {
	p := &Permit{From: anyAddress(t, "from"), Permitted: Permitted{anyAddress(t, "token"), anyAmount(t, "amount")},
		Spender: ExactProxy, Nonce: anyAmount(t, "nonce"), Deadline: anyAmount(t, "deadline"),
		Witness: Witness{To: anyAddress(t, "to"), ValidAfter: anyAmount(t, "after")}}
	if upto {
		facilitator := anyAddress(t, "facilitator")
		p.Spender, p.Witness.Facilitator = UptoProxy, &facilitator
	}
	return p
}

// TestCallsAreThoseOfTheABI: calldata is byte for byte what go-ethereum encodes from the contracts' declarations.
func TestCallsAreThoseOfTheABI(t *testing.T) {
	t.Parallel()
	of, err := abi.JSON(strings.NewReader(settlementABI))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		sig := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "signature")
		same := func(what string, got []byte, function string, args ...any) {
			want, err := of.Pack(function, args...)
			if err != nil || !bytes.Equal(got, want) {
				t.Fatalf("%s: %x, want %x: %v", what, got, want, err)
			}
		}
		type call struct {
			Target       common.Address
			AllowFailure bool
			CallData     []byte
		}
		first := subcall{anyAddress(t, "first"), rapid.Bool().Draw(t, "may fail"), sig}
		second := subcall{anyAddress(t, "second"), false, rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
		same("two calls", packCalls(first, second), "aggregate3", []call{{first.to, first.mayFail, first.calldata},
			{second.to, second.mayFail, second.calldata}})
		p := anyPermit(t, false)
		type permitted struct {
			Token  common.Address
			Amount *big.Int
		}
		same("a permit", proxyCall(p, sig, Amount{}), "settle", struct {
			Permitted       permitted
			Nonce, Deadline *big.Int
		}{permitted{p.Permitted.Token, p.Permitted.Amount.Big()}, p.Nonce.Big(), p.Deadline.Big()}, p.From, struct {
			To         common.Address
			ValidAfter *big.Int
		}{p.Witness.To, p.Witness.ValidAfter.Big()}, sig)
		a := &Authorization{From: p.From, To: p.Witness.To, Value: p.Nonce, ValidAfter: p.Deadline,
			ValidBefore: p.Permitted.Amount, Nonce: common.BytesToHash(sig)}
		same("an authorization", tokenCall(a, sig, false), "transferWithAuthorization", a.From, a.To, a.Value.Big(),
			a.ValidAfter.Big(), a.ValidBefore.Big(), a.Nonce, sig)
	})
}

// TestChargedIsWhatIsMoved: what a settling transaction moves is read as it was written, in every form of it and behind
// the deployment of a wallet.
func TestChargedIsWhatIsMoved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		sig, charge := rapid.SliceOfN(rapid.Byte(), 65, 65).Draw(t, "signature"), anyAmount(t, "charge")
		exact, upto, token := anyPermit(t, false), anyPermit(t, true), anyAddress(t, "asset")
		a := &Authorization{From: exact.From, To: exact.Witness.To, Value: charge}
		for name, x := range map[string]struct {
			to   common.Address
			data []byte
			want Charge
		}{
			"exact": {ExactProxy, proxyCall(exact, sig, Amount{}),
				Charge{exact.Permitted.Token, exact.Witness.To, exact.Permitted.Amount}},
			"upto":  {UptoProxy, proxyCall(upto, sig, charge), Charge{upto.Permitted.Token, upto.Witness.To, charge}},
			"split": {token, tokenCall(a, sig, true), Charge{token, a.To, charge}},
			"bytes": {token, tokenCall(a, sig, false), Charge{token, a.To, charge}},
		} {
			if token == ExactProxy || token == UptoProxy || token == Multicall3 {
				t.Skip("the token is a contract of the protocol")
			}
			behind := Transfer{Target: x.to, Data: x.data}
			behind.deploying(&signature{factory: token, deployment: sig})
			for _, tx := range []Transfer{{Target: x.to, Data: x.data}, behind} {
				if got, ok := Charged(tx.Target, tx.Data); !ok || got != x.want {
					t.Fatalf("%s: %+v, want %+v", name, got, x.want)
				}
				if got, ok := Charged(tx.Target, tx.Data[:4+6*32]); ok {
					t.Fatalf("%s, cut off: %+v", name, got)
				}
			}
		}
	})
}

// TestPaidNeedsTheTransfer: only the token's own event of exactly this transfer shows that it was paid.
func TestPaidNeedsTheTransfer(t *testing.T) {
	t.Parallel()
	transfer := Transfer{Token: common.HexToAddress("0xa1"), From: common.HexToAddress("0xc1"),
		To: common.HexToAddress("0xb2"), Amount: NewAmount(5)}
	good := func() types.Log {
		return types.Log{Address: transfer.Token, Data: uintWord(5), Topics: []common.Hash{topic(eventTransfer),
			common.BytesToHash(transfer.From[:]), common.BytesToHash(transfer.To[:])}}
	}
	if !transfer.Paid([]types.Log{{}, good()}) {
		t.Error("the transfer is not seen")
	}
	for name, change := range map[string]func(*types.Log){
		"another token":   func(l *types.Log) { l.Address[0] = 1 },
		"less":            func(l *types.Log) { l.Data = uintWord(4) },
		"more":            func(l *types.Log) { l.Data = uintWord(6) },
		"no amount":       func(l *types.Log) { l.Data = nil },
		"two words":       func(l *types.Log) { l.Data = append(l.Data, uintWord(0)...) },
		"another event":   func(l *types.Log) { l.Topics[0] = topic("Approval(address,address,uint256)") },
		"another payer":   func(l *types.Log) { l.Topics[1] = l.Topics[2] },
		"another payee":   func(l *types.Log) { l.Topics[2] = l.Topics[1] },
		"an NFT":          func(l *types.Log) { l.Topics = append(l.Topics, common.Hash{31: 5}) },
		"no topics":       func(l *types.Log) { l.Topics = nil },
		"a topic too few": func(l *types.Log) { l.Topics = slices.Clone(l.Topics[:2]) },
	} {
		l := good()
		change(&l)
		if transfer.Paid([]types.Log{l}) {
			t.Errorf("%s is taken for the transfer", name)
		}
	}
	if free := (&Transfer{}); !free.Paid(nil) {
		t.Error("a charge of nothing needs a log")
	}
}

// TestIDs: two payments that the chain cannot both take have one ID, and others have IDs of their own.
func TestIDs(t *testing.T) {
	t.Parallel()
	a := Transfer{ChainID: 1, ByToken: true, Token: common.HexToAddress("0xa1"), From: common.HexToAddress("0xc1"),
		Nonce: common.Hash{31: 1}}
	changed := func(change func(*Transfer)) string {
		b := a
		change(&b)
		return b.ID()
	}
	if a.ID() != strings.ToLower(a.ID()) || changed(func(t *Transfer) { t.To[0], t.Amount = 1, NewAmount(9) }) != a.ID() {
		t.Errorf("%s: the ID follows from what the payer can use once", a.ID())
	}
	ids := []string{a.ID(), changed(func(t *Transfer) { t.ChainID = 10 }), changed(func(t *Transfer) { t.Token[0] = 1 }),
		changed(func(t *Transfer) { t.From[0] = 1 }), changed(func(t *Transfer) { t.Nonce[0] = 1 }),
		changed(func(t *Transfer) { t.ByToken = false })}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 6 {
		t.Errorf("two of %q are the same", ids)
	}
	if changed(func(t *Transfer) { t.ByToken = false }) !=
		changed(func(t *Transfer) { t.ByToken, t.Token = false, common.HexToAddress("0xa2") }) {
		t.Error("a nonce of Permit2 is used once for all tokens")
	}
}

// TestAnswersOfTokens: what a token answers is read only where it has the form of the ABI.
func TestAnswersOfTokens(t *testing.T) {
	t.Parallel()
	long := append(uintWord(32), uintWord(3)...)
	for name, x := range map[string]struct {
		answer []byte
		want   string
	}{
		"a text":            {append(long, "abc"...), "abc"},
		"none":              {nil, ""},
		"a word":            {uintWord(7), ""},
		"cut off":           {append(long, "ab"...), ""},
		"a huge length":     {append(uintWord(32), bytes.Repeat([]byte{0xff}, 32)...), ""},
		"a length of 2^63":  {append(uintWord(32), append(make([]byte, 24), 0x80, 0, 0, 0, 0, 0, 0, 0)...), ""},
		"an empty text":     {append(uintWord(32), uintWord(0)...), ""},
		"more than its end": {append(append(long, "abc"...), make([]byte, 29)...), "abc"},
	} {
		if got := readString(x.answer); got != x.want {
			t.Errorf("%s: %q, want %q", name, got, x.want)
		}
	}
	for _, answer := range [][]byte{nil, make([]byte, 31), append(uintWord(7), 0)} {
		if got := readAmount(answer); got != (Amount{}) {
			t.Errorf("%x is read as %s", answer, got)
		}
	}
}
