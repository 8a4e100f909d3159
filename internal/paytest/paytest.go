// Package paytest runs a devnet with all that x402 payments need: tokens, and Permit2, the payment proxies and
// Multicall3 at their well-known addresses. It is for tests only.
//
// New starts a World for one test: a real node in this process, with a token that has EIP-3009, one that has not, a
// contract wallet, and one that is not deployed. World makes requirements and signs payments of its accounts. Shop is
// a server that is paid, and loses answers when a test asks for it. The hash of a receipt is computed here by the
// text of the specification, so that a test does not compare the code with itself.
package paytest

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/math"
	"github.com/ethereum/go-ethereum/core/vm/runtime"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute/contracts/bindings/fixtures"
	"repute/devnet"
	"repute/orchestrator/wallet/keys"
	"repute/x402"
)

// Name and version of the EIP-712 domain of World.Token.
const (
	TokenName    = "USDC"
	TokenVersion = "2"
)

// Accounts of the devnet.
const (
	SettlerAccount  = iota // sends settlements
	PayerAccount           // has tokens, approved for Permit2, and signs
	PayeeAccount           // is paid
	OwnerAccount           // deploys
	StrangerAccount        // has nothing
)

// Funds are the units of each token that each payer has.
const Funds = 1_000_000

// World is a chain with tokens.
type World struct {
	*devnet.Devnet
	Token   common.Address // EIP-3009, like USDC
	Plain   common.Address // without EIP-3009
	Wallet  common.Address // contract that the payer signs for (ERC-1271), with funds
	Factory common.Address // deploys wallets
	// Unborn is a wallet of the payer with funds that is not deployed.
	Unborn common.Address
}

// Code is the runtime code of the contracts with well-known addresses.
func Code() (map[common.Address][]byte, error) {
	out := map[common.Address][]byte{}
	for at, bin := range map[common.Address]string{x402.Permit2: fixtures.Permit2MetaData.Bin,
		x402.ExactProxy: fixtures.ExactPermit2ProxyMetaData.Bin, x402.UptoProxy: fixtures.UptoPermit2ProxyMetaData.Bin,
		x402.Multicall3: fixtures.MulticallMetaData.Bin} {
		code, _, _, err := runtime.Create(common.FromHex(bin), nil)
		if err != nil {
			return nil, fmt.Errorf("code of %s: %w", at, err)
		}
		out[at] = code
	}
	return out, nil
}

// New starts a chain that makes a block four times a second. It ends with the test.
func New(t testing.TB, o devnet.Options) *World {
	t.Helper()
	code, err := Code()
	check(t, err)
	o.Code, o.Accounts = code, max(o.Accounts, 8)
	d, err := devnet.Start(t.Context(), o)
	check(t, err)
	t.Cleanup(func() { _ = d.Close() })
	w := &World{Devnet: d}
	check(t, w.deploy(t.Context()))
	d.SetPeriod(250 * time.Millisecond)
	t.Cleanup(func() { d.SetPeriod(0) })
	for d.Head().Time.Before(time.Now().Add(-5 * time.Second)) { // blocks on demand are of the past
		time.Sleep(10 * time.Millisecond)
	}
	return w
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("unexpected error: %v", err)
	}
}

// deploy makes the tokens and wallets.
func (w *World) deploy(ctx context.Context) error {
	owner, payer, b := w.Account(OwnerAccount), w.Account(PayerAccount), w.Batch()
	token, plain := fixtures.NewAuthorizedToken(), fixtures.NewPlainToken()
	for i, x := range []struct {
		at   *common.Address
		bin  string
		args []byte
	}{{&w.Token, fixtures.AuthorizedTokenMetaData.Bin, token.PackConstructor(TokenName, TokenVersion)},
		{&w.Plain, fixtures.PlainTokenMetaData.Bin, nil},
		{&w.Wallet, fixtures.ContractWalletMetaData.Bin, fixtures.NewContractWallet().PackConstructor(payer.Address)},
		{&w.Factory, fixtures.WalletFactoryMetaData.Bin, nil}} {
		b.Send(owner, nil, append(common.FromHex(x.bin), x.args...))
		*x.at = crypto.CreateAddress(owner.Address, uint64(i))
	}
	creation := append(common.FromHex(fixtures.ContractWalletMetaData.Bin),
		fixtures.NewContractWallet().PackConstructor(payer.Address)...)
	w.Unborn = crypto.CreateAddress2(w.Factory, [32]byte{}, crypto.Keccak256(creation))
	for _, who := range []common.Address{payer.Address, w.Wallet, w.Unborn} {
		b.Send(owner, &w.Token, token.PackMint(who, big.NewInt(Funds)))
		b.Send(owner, &w.Plain, plain.PackMint(who, big.NewInt(Funds)))
	}
	most := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))
	b.Send(payer, &w.Plain, plain.PackApprove(x402.Permit2, most))
	_, err := b.Mine(ctx)
	return err
}

// Balance is what an account has of a token.
func (w *World) Balance(t testing.TB, token, who common.Address) int64 {
	t.Helper()
	out, err := w.call(t.Context(), token, fixtures.NewPlainToken().PackBalanceOf(who))
	check(t, err)
	return new(big.Int).SetBytes(out).Int64()
}

func (w *World) call(ctx context.Context, to common.Address, data []byte) ([]byte, error) {
	return w.Client().CallContract(ctx, ethereum.CallMsg{To: &to, Data: data}, nil)
}

// Payee is the account that is paid.
func (w *World) Payee() common.Address { return w.Account(PayeeAccount).Address }

// Signer signs with the key of an account.
func (w *World) Signer(account int) keys.Local { return keys.Local{Key: w.Account(account).Key} }

// Requirements demand an amount of the token by EIP-3009.
func (w *World) Requirements(units uint64) x402.Requirements {
	return w.require(x402.SchemeExact, w.Token, units, x402.Extra{Name: TokenName, Version: TokenVersion})
}

// PlainRequirements demand an amount of the other token, by Permit2.
func (w *World) PlainRequirements(units uint64) x402.Requirements {
	return w.require(x402.SchemeExact, w.Plain, units, x402.Extra{Method: x402.MethodPermit2})
}

// UptoRequirements demand at most an amount of the other token.
func (w *World) UptoRequirements(units uint64) x402.Requirements {
	settler := w.Account(SettlerAccount).Address
	return w.require(x402.SchemeUpto, w.Plain, units, x402.Extra{Facilitator: &settler})
}

func (w *World) require(scheme string, token common.Address, units uint64, e x402.Extra) x402.Requirements {
	extra, err := e.JSON()
	if err != nil {
		extra = nil // a struct of strings is always JSON
	}
	return x402.Requirements{Scheme: scheme, Network: x402.Network(w.Chain().ID), Amount: x402.NewAmount(units),
		Asset: token, PayTo: w.Payee(), MaxTimeoutSeconds: 3600, Extra: extra}
}

// Pay signs a payment by the payer.
func (w *World) Pay(t testing.TB, r x402.Requirements) x402.Payment {
	t.Helper()
	return w.PayAs(t, w.Signer(PayerAccount), r)
}

// PayAs signs a payment by an account.
func (w *World) PayAs(t testing.TB, s x402.Signer, r x402.Requirements) x402.Payment {
	t.Helper()
	p, err := x402.Pay(t.Context(), s, &x402.PaymentRequired{X402Version: x402.V2,
		Resource: x402.Resource{URL: "https://a.example/x"}}, x402.V2, r, time.Now())
	check(t, err)
	return p
}

// For is a signer for a contract wallet: its address, with the payer's key.
type For struct {
	Wallet common.Address
	Key    keys.Local
}

// Address implements x402.Signer.
func (f For) Address() common.Address { return f.Wallet }

// SignTyped implements x402.Signer.
func (f For) SignTyped(ctx context.Context, data apitypes.TypedData) ([]byte, error) {
	return f.Key.SignTyped(ctx, data)
}

// Undeployed wraps a signature of the wallet that is not deployed (ERC-6492).
func (w *World) Undeployed(sig []byte) []byte {
	pad := func(b []byte) []byte { return append(b, make([]byte, (32-len(b)%32)%32)...) }
	word := func(n int) []byte { return common.BigToHash(big.NewInt(int64(n))).Bytes() }
	call := fixtures.NewWalletFactory().PackDeploy(w.Account(PayerAccount).Address)
	tail := append(word(len(call)), pad(call)...)
	out := append(common.LeftPadBytes(w.Factory[:], 32), word(96)...)
	out = append(append(out, word(96+len(tail))...), tail...)
	out = append(append(out, word(len(sig))...), pad(append([]byte{}, sig...))...)
	return append(out, common.FromHex("6492649264926492649264926492649264926492649264926492649264926492")...)
}

// Send has an account call a contract, in a block of its own.
func (w *World) Send(t testing.TB, account int, to common.Address, data []byte) {
	t.Helper()
	b := w.Batch()
	b.Send(w.Account(account), &to, data)
	_, err := b.Mine(t.Context())
	check(t, err)
}

// ReceiptSigner returns the account that signed a receipt. It hashes the receipt by the text of the extension, and not
// by the code that signed it.
func ReceiptSigner(r *x402.SignedReceipt) (common.Address, error) {
	of, texts := r.Payload, func(names ...string) (out []apitypes.Type) {
		for _, name := range names {
			out = append(out, apitypes.Type{Name: name, Type: "string"})
		}
		return out
	}
	number := func(name string) []apitypes.Type { return []apitypes.Type{{Name: name, Type: "uint256"}} }
	sum, _, err := apitypes.TypedDataAndHash(apitypes.TypedData{PrimaryType: "Receipt",
		Domain: apitypes.TypedDataDomain{Name: "x402 receipt", Version: "1", ChainId: math.NewHexOrDecimal256(1)},
		Types: apitypes.Types{"EIP712Domain": append(texts("name", "version"), number("chainId")...),
			"Receipt": slices.Concat(number("version"), texts("network", "resourceUrl", "payer"), number("issuedAt"),
				texts("transaction"))},
		Message: apitypes.TypedDataMessage{"version": fmt.Sprint(of.Version), "network": of.Network,
			"resourceUrl": of.ResourceURL, "payer": of.Payer, "issuedAt": fmt.Sprint(of.IssuedAt),
			"transaction": of.Transaction}})
	if err != nil {
		return common.Address{}, err
	}
	if len(r.Signature) != crypto.SignatureLength {
		return common.Address{}, fmt.Errorf("a signature of %d bytes", len(r.Signature))
	}
	plain := slices.Clone(r.Signature)
	plain[crypto.RecoveryIDOffset] -= 27
	key, err := crypto.SigToPub(sum, plain)
	if err != nil {
		return common.Address{}, err
	}
	return crypto.PubkeyToAddress(*key), nil
}
