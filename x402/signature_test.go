package x402

import (
	"bytes"
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"
)

// TestDigests compares hashes that are signed with those of viem 2.38.0 for the same messages.
func TestDigests(t *testing.T) {
	t.Parallel()
	usdc, payee := common.HexToAddress("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"),
		common.HexToAddress("0x209693Bc6afc0C5328bA36FaF03C514EF312287C")
	a := Authorization{From: common.HexToAddress("0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A"), To: payee,
		Value: NewAmount(10000), ValidAfter: NewAmount(1740672089), ValidBefore: NewAmount(1740672154),
		Nonce: common.BytesToHash(bytes.Repeat([]byte{0xab}, 32))}
	p := Permit{From: a.From, Permitted: Permitted{usdc, NewAmount(10000)}, Spender: ExactProxy, Nonce: NewAmount(7),
		Deadline: NewAmount(1740672154), Witness: Witness{To: payee, ValidAfter: NewAmount(5)}}
	upto, facilitator := p, common.HexToAddress("0x09")
	upto.Spender, upto.Witness.Facilitator = UptoProxy, &facilitator
	for name, x := range map[string]struct {
		got  func() (common.Hash, error)
		want string
	}{
		"EIP-3009": {func() (common.Hash, error) { return digest(AuthorizationData(a, 8453, usdc, "USD Coin", "2")) },
			"0x8e7e4b0b15226d57370989df7da2961a9b5ec9edf27598d8e93d191f9284ddfc"},
		"exact": {func() (common.Hash, error) { return digest(PermitData(p, 8453)) },
			"0x94b109230077dce73d8f9aa17e9ff0f4e8c241f1e840b2c681d7b04b10bb57bf"},
		"upto": {func() (common.Hash, error) { return digest(PermitData(upto, 8453)) },
			"0xcbc84ddd5f6d6b64b9ab9cc3ffecd3c0175db985ff0ac5250c062a591557cb5d"},
	} {
		if got, err := x.got(); err != nil || got != common.HexToHash(x.want) {
			t.Errorf("%s: %s, want %s: %v", name, got, x.want, err)
		}
	}
	// The domain of USDC on Base, as its contract answers.
	if got := separator("USD Coin", "2", 8453, usdc); got !=
		common.HexToHash("0x02fa7265e7c5d81118673727957699e4d68f74cd74b7db77da710fe8a2c7834f") {
		t.Errorf("separator %s", got)
	}
}

// TestForms: each signature of an account has one form. v may be 0, 1, 27 or 28; a high s, another
// v and the compact form of 64 bytes are no signatures of an account.
func TestForms(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		key, err := crypto.ToECDSA(crypto.Keccak256(rapid.SliceOf(rapid.Byte()).Draw(t, "key")))
		if err != nil {
			t.Skip()
		}
		sum := crypto.Keccak256Hash(rapid.SliceOf(rapid.Byte()).Draw(t, "message"))
		sig, err := crypto.Sign(sum[:], key)
		if err != nil {
			t.Fatal(err)
		}
		signer := crypto.PubkeyToAddress(key.PublicKey)
		usual := append(bytes.Clone(sig[:64]), sig[64]+27)
		for _, form := range [][]byte{sig, usual} {
			if got, out, ok := recovered(sum, form); !ok || got != signer || !bytes.Equal(out, usual) {
				t.Fatalf("v %d: %s, %t", form[64], got, ok)
			}
		}
		high := new(big.Int).Sub(crypto.S256().Params().N, new(big.Int).SetBytes(sig[32:64]))
		flipped := append(append(bytes.Clone(sig[:32]), common.LeftPadBytes(high.Bytes(), 32)...), 27+(1-sig[64]))
		compact := bytes.Clone(sig[:64])
		compact[32] |= sig[64] << 7
		other := append(bytes.Clone(sig[:64]), byte(rapid.SampledFrom([]int{2, 3, 26, 29, 31, 255}).Draw(t, "v")))
		for _, form := range [][]byte{flipped, compact, other, usual[:63], append(usual, 0), nil} {
			if got, _, ok := recovered(sum, form); ok {
				t.Fatalf("%x is taken for a signature of %s", form, got)
			}
		}
	})
}

// wrap encodes a signature by ERC-6492.
func wrap(factory common.Address, call, sig []byte) []byte {
	out := append(word(factory), uintWord(96)...)
	tail := bytesTail(call)
	out = append(out, uintWord(uint64(96+len(tail)))...)
	return append(append(append(out, tail...), bytesTail(sig)...), common.FromHex(deploymentAppendix)...)
}

// TestWrapped: signatures by ERC-6492 are unwrapped to what was wrapped.
func TestWrapped(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		call := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "call")
		sig := rapid.SliceOfN(rapid.Byte(), 1, 100).Draw(t, "signature")
		got, err := parseSignature(wrap(common.HexToAddress("0x07"), call, sig))
		if err != nil || got.factory != common.HexToAddress("0x07") || !bytes.Equal(got.deployment, call) ||
			!bytes.Equal(got.raw, sig) {
			t.Fatalf("%+v: %v", got, err)
		}
	})
}

// TestSettlesBy: of transactions only those that settle payments are recognized, directly or behind
// the deployment of a wallet.
func TestSettlesBy(t *testing.T) {
	t.Parallel()
	token := common.HexToAddress("0x55")
	good := tokenCall(&Authorization{}, bytes.Repeat([]byte{1}, 65), false)
	transfer := Transfer{Target: token, Data: good}
	if to, call, ok := settlesBy(token, good); !ok || to != token || !bytes.Equal(call, good) {
		t.Error("a transfer is not recognized")
	}
	transfer.deploying(&signature{factory: common.HexToAddress("0x66"), deployment: []byte{1, 2, 3}})
	if to, call, ok := settlesBy(transfer.Target, transfer.Data); !ok || to != token || !bytes.Equal(call, good) {
		t.Error("a transfer behind a deployment is not recognized")
	}
	approve := pack("approve(address,uint256)", nil, token, 1)
	for name, x := range map[string]struct {
		to   common.Address
		data []byte
	}{
		"another function":            {token, approve},
		"nothing":                     {token, nil},
		"a token's call of the proxy": {ExactProxy, good},
		"another function behind": {Multicall3,
			packCalls(subcall{token, true, nil}, subcall{token, false, approve})},
		"one call": {Multicall3, packCalls(subcall{token, false, good})},
		"three calls": {Multicall3,
			packCalls(subcall{token, true, nil}, subcall{token, false, good}, subcall{token, false, approve})},
		"more bytes":                    {Multicall3, append(bytes.Clone(transfer.Data), 0)},
		"a call of Multicall3 itself":   {Multicall3, good},
		"an upto call of the exact one": {ExactProxy, append(selector(sigUptoSettle), good...)},
	} {
		if _, _, ok := settlesBy(x.to, x.data); ok {
			t.Errorf("%s is taken for a settlement", name)
		}
	}
}

// FuzzSignature: no bytes break the parser, and what it unwraps is a part of them.
func FuzzSignature(f *testing.F) {
	f.Add(wrap(common.HexToAddress("0x07"), []byte{1}, []byte{2}))
	f.Add(common.FromHex(deploymentAppendix))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s, err := parseSignature(raw)
		if err == nil && !(bytes.Contains(raw, s.raw) && bytes.Contains(raw, s.deployment)) {
			t.Errorf("%x is unwrapped to %x", raw, s.raw)
		}
		recovered(common.Hash{1}, raw)
	})
}

// FuzzTransaction: no bytes break the recognition of settlements, and one that is recognized behind
// a deployment is encoded as this package does it.
func FuzzTransaction(f *testing.F) {
	f.Add(packCalls(subcall{common.Address{1}, true, []byte{1}}, subcall{common.Address{2}, false, []byte{2}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if to, call, ok := lastCall(data); ok && !bytes.Contains(data, call) {
			t.Errorf("%x of %s is no part of %x", call, to, data)
		}
		readString(data)
		settlesBy(Multicall3, data)
	})
}

// answers is a chain on which every call is answered in one way.
type answers func(data []byte) []byte

// Call implements Chain.
func (a answers) Call(_ context.Context, _ uint64, _, _ common.Address, data []byte) ([]byte, error) {
	return a(data), nil
}

// TestWalletAnswers: a wallet's answer counts as a whole. One that answers calls with themselves, which begin
// with the value that means valid, has signed nothing.
func TestWalletAnswers(t *testing.T) {
	t.Parallel()
	valid := func(rest byte) answers {
		return func([]byte) []byte { return append(common.FromHex(validSignature), bytes.Repeat([]byte{rest}, 28)...) }
	}
	for name, x := range map[string]struct {
		says answers
		want bool
	}{
		"valid":            {valid(0), true},
		"more behind":      {valid(1), false},
		"its call":         {func(data []byte) []byte { return data }, false},
		"a word of a call": {func(data []byte) []byte { return data[:32] }, false},
		"four bytes":       {func([]byte) []byte { return common.FromHex(validSignature) }, false},
		"nothing":          {func([]byte) []byte { return nil }, false},
	} {
		v := &Verifier{Chain: x.says}
		got, err := v.ValidSignature(t.Context(), 1, common.Address{1}, common.Hash{2}, []byte{3})
		paid := &Payload{Signature: []byte{3}, Authorization: &Authorization{From: common.Address{1}}}
		_, _, refused := v.signer(t.Context(), &Transfer{From: common.Address{1}}, paid,
			&Extra{Name: "USD Coin", Version: "2"})
		if err != nil || got != x.want || (refused == nil) != x.want {
			t.Errorf("%s: %t, %v, %v", name, got, err, refused)
		}
	}
}
