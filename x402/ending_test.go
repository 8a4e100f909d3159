package x402

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// scripted is a chain by the answers of its contracts to functions, each by its signature. A function without an
// answer reverts; the answer nil says that the chain cannot be asked.
type scripted struct {
	says map[string][]byte
	// finalSeconds is the time of the newest final block, and moves are the logs of the chain.
	finalSeconds uint64
	moves        []types.Log
	calls        map[common.Hash]subcall // what its transactions call
}

var errDown = errors.New("connection refused")

// Call implements Chain.
func (s *scripted) Call(_ context.Context, _ uint64, _, _ common.Address, data []byte) ([]byte, error) {
	for function, answer := range s.says {
		if bytes.HasPrefix(data, selector(function)) {
			if answer == nil {
				return nil, errDown
			}
			return answer, nil
		}
	}
	return nil, ErrReverted
}

// Logs implements History.
func (s *scripted) Logs(_ context.Context, _ uint64, q ethereum.FilterQuery,
	_ Window) (out []types.Log, whole bool, err error) {
	for _, l := range s.moves {
		if (q.BlockHash == nil || *q.BlockHash == l.BlockHash) &&
			(q.ToBlock == nil || l.BlockNumber <= q.ToBlock.Uint64()) && hasTopics(&l, q.Topics) {
			out = append(out, l)
		}
	}
	return out, len(out) == 0, nil
}

// hasTopics reports whether a log has one of the topics of each place that asks for some.
func hasTopics(l *types.Log, of [][]common.Hash) bool {
	for i, list := range of {
		if len(l.Topics) <= i || len(list) > 0 && !slices.Contains(list, l.Topics[i]) {
			return false
		}
	}
	return true
}

// Transaction implements History.
func (s *scripted) Transaction(_ context.Context, _ uint64, hash common.Hash) (common.Address, []byte, error) {
	return s.calls[hash].to, s.calls[hash].calldata, nil
}

// Finalized implements History.
func (s *scripted) Finalized(context.Context, uint64) (number, seconds uint64, err error) {
	return 100, s.finalSeconds, nil
}

var paidToken = common.HexToAddress("0xa1")

const paidAt = 1_800_000_000 // when payments of these tests begin, in seconds since 1970

// signedPayment is a payment by EIP-3009 with the requirements that it is for, signed by a key of its own.
func signedPayment(t *testing.T) (p Payment, r Requirements) {
	t.Helper()
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	r = Requirements{Scheme: SchemeExact, Network: "eip155:8453", Amount: NewAmount(10_000), Asset: paidToken,
		PayTo: common.HexToAddress("0xb2"), MaxTimeoutSeconds: 60,
		Extra: json.RawMessage(`{"name":"USD Coin","version":"2"}`)}
	a := newAuthorization(crypto.PubkeyToAddress(key.PublicKey), &r, time.Unix(paidAt, 0))
	sum, err := digest(AuthorizationData(*a, 8453, paidToken, "USD Coin", "2"))
	if err != nil {
		t.Fatal(err)
	}
	sig, err := crypto.Sign(sum[:], key)
	if err != nil {
		t.Fatal(err)
	}
	return Payment{Version: V2, Accepted: r, Payload: Payload{Signature: sig, Authorization: a}}, r
}

// willing is a chain on which every payment of signedPayment is good.
func willing() map[string][]byte {
	own := separator("USD Coin", "2", 8453, paidToken)
	return map[string][]byte{sigDomain: own[:], sigNonceState: uintWord(0), sigBalance: uintWord(10_000),
		sigTransferSplit: {}}
}

// verifying is a Verifier of a chain at the time when payments begin.
func verifying(c Chain) *Verifier {
	return &Verifier{Chain: c, Now: func() time.Time { return time.Unix(paidAt, 0) }}
}

// TestVerifyAsksTheChain: each thing that the chain can say against a payment has its reason. A chain that cannot be
// asked refuses nothing: the same payment may be sent again.
func TestVerifyAsksTheChain(t *testing.T) {
	t.Parallel()
	text := func(s string) []byte { return append(append(uintWord(32), uintWord(uint64(len(s)))...), s...) }
	for name, x := range map[string]struct {
		change map[string][]byte
		reason Reason
	}{
		"good":              {nil, ""},
		"used":              {map[string][]byte{sigNonceState: uintWord(1)}, ReasonNonceUsed},
		"poor":              {map[string][]byte{sigBalance: uintWord(9_999)}, ReasonInsufficientFunds},
		"no token":          {map[string][]byte{sigBalance: {}}, ReasonInvalidRequirements},
		"another domain":    {map[string][]byte{sigDomain: uintWord(7)}, ReasonInvalidRequirements},
		"the token says no": {map[string][]byte{sigTransferSplit: uintWord(0)}, ReasonTransactionState},
		"the token says yes": {map[string][]byte{sigTransferSplit: uintWord(1)},
			""},
		"no separator, the same name": {map[string][]byte{sigDomain: {}, sigName: text("USD Coin"),
			sigVersion: text("2")}, ""},
		"no separator, another version": {map[string][]byte{sigDomain: {}, sigName: text("USD Coin"),
			sigVersion: text("1")}, ReasonInvalidRequirements},
		// Of several the first in the order of the checks is told, whichever answer came first.
		"another domain, used and poor": {map[string][]byte{sigDomain: uintWord(7), sigNonceState: uintWord(1),
			sigBalance: uintWord(0)}, ReasonInvalidRequirements},
		"used and poor": {map[string][]byte{sigNonceState: uintWord(1), sigBalance: uintWord(0)}, ReasonNonceUsed},
	} {
		p, r := signedPayment(t)
		c := &scripted{says: willing()}
		for function, answer := range x.change {
			c.says[function] = answer
		}
		transfer, err := verifying(c).Verify(t.Context(), &p, &r)
		var refused *Refusal
		if errors.As(err, &refused) != (x.reason != "") || refused != nil &&
			(refused.Reason != x.reason || refused.Payer != p.Payload.Payer().Hex()) || refused == nil && err != nil {
			t.Errorf("%s: %v, want %q", name, err, x.reason)
		}
		if charge, ok := Charged(transfer.Target, transfer.Data); x.reason == "" && (!ok ||
			charge != Charge{paidToken, r.PayTo, r.Amount}) {
			t.Errorf("%s: the transaction moves %+v", name, charge)
		}
	}
	for _, function := range []string{sigDomain, sigNonceState, sigBalance, sigTransferSplit} {
		p, r := signedPayment(t)
		c := &scripted{says: willing()}
		c.says[function] = nil
		var refused *Refusal
		if _, err := verifying(c).Verify(t.Context(), &p, &r); !errors.Is(err, ErrUnavailable) ||
			errors.As(err, &refused) || !errors.Is(err, errDown) {
			t.Errorf("%s cannot be asked: %v", function, err)
		}
	}
	c := &scripted{says: willing()}
	delete(c.says, sigTransferSplit)
	p, r := signedPayment(t)
	if _, err := verifying(c).Verify(t.Context(), &p, &r); !isReason(err, ReasonTransactionState) {
		t.Errorf("a transfer that reverts: %v", err)
	}
}

func isReason(err error, reason Reason) bool {
	var refused *Refusal
	return errors.As(err, &refused) && refused.Reason == reason
}

// TestVerifyWithoutTheChain: what a payment itself shows to be wrong is refused before the chain is asked.
func TestVerifyWithoutTheChain(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]struct {
		change func(*Payment, *Requirements)
		reason Reason
	}{
		"another price":   {func(_ *Payment, r *Requirements) { r.Amount = NewAmount(1) }, ReasonValue},
		"another payee":   {func(_ *Payment, r *Requirements) { r.PayTo[0] = 1 }, ReasonRecipient},
		"another network": {func(p *Payment, _ *Requirements) { p.Accepted.Network = "base-sepolia" }, ReasonInvalidNetwork},
		"another scheme":  {func(p *Payment, _ *Requirements) { p.Accepted.Scheme = SchemeUpto }, ReasonInvalidScheme},
		"both ways":       {func(p *Payment, _ *Requirements) { p.Payload.Permit2 = &Permit{} }, ReasonInvalidPayload},
		"no signature":    {func(p *Payment, _ *Requirements) { p.Payload.Signature = nil }, ReasonInvalidPayload},
		"a huge signature": {func(p *Payment, _ *Requirements) { p.Payload.Signature = make([]byte, 16<<10+1) },
			ReasonInvalidPayload},
		"a permit is asked for": {func(_ *Payment, r *Requirements) {
			r.Extra = json.RawMessage(`{"assetTransferMethod":"permit2"}`)
		}, ReasonInvalidPayload},
		"too early": {func(p *Payment, _ *Requirements) {
			p.Payload.Authorization.ValidAfter = NewAmount(paidAt + 1)
		}, ReasonValidAfter},
		"too late": {func(p *Payment, _ *Requirements) {
			p.Payload.Authorization.ValidBefore = NewAmount(paidAt + 5) // a transaction needs 6 seconds
		}, ReasonValidBefore},
	} {
		p, r := signedPayment(t)
		x.change(&p, &r)
		if _, err := verifying(nil).Verify(t.Context(), &p, &r); !isReason(err, x.reason) {
			t.Errorf("%s: %v, want %s", name, err, x.reason)
		}
	}
}

// saying is a facilitator that says the same of every payment.
type saying struct {
	v Verification
	s Settlement
	e error
}

// Verify implements Facilitator.
func (f saying) Verify(context.Context, Payment, Requirements) (Verification, error) { return f.v, f.e }

// Settle implements Facilitator.
func (f saying) Settle(context.Context, Payment, Requirements) (Settlement, error) { return f.s, f.e }

// Supported implements Facilitator.
func (f saying) Supported(context.Context) (Supported, error) { return Supported{}, f.e }

// settledLogs are those by which a token shows that the transaction 0x77 used a payment's authorization, and that it
// moved the amount by it.
func settledLogs(p *Payment, r *Requirements) (used, moved types.Log) {
	a := p.Payload.Authorization
	from := common.BytesToHash(a.From[:])
	used = types.Log{Address: r.Asset, BlockNumber: 50, BlockHash: common.HexToHash("0xb50"), Index: 3,
		TxHash: common.HexToHash("0x77"), Topics: []common.Hash{topic(eventAuthorizationUsed), from, a.Nonce}}
	moved = used
	moved.Index, moved.Data = 4, word(r.Amount)
	moved.Topics = []common.Hash{topic(eventTransfer), from, common.BytesToHash(r.PayTo[:])}
	return used, moved
}

// TestConfirmedBelievesTheChain: a facilitator is believed when the chain shows what it says, and a payment that it
// does not settle is settled where the chain shows that.
func TestConfirmedBelievesTheChain(t *testing.T) {
	t.Parallel()
	yes := saying{s: Settlement{Success: true, Transaction: "0x99"}}
	no := saying{s: Settlement{ErrorReason: ReasonSettle}}
	lost := saying{e: ErrUnknownEnd}
	for name, x := range map[string]struct {
		says    saying
		logs    func(used, moved types.Log) []types.Log // of the chain; nil: the authorization is unused
		final   uint64                                  // time of the newest final block
		paid    bool
		dead    bool
		unknown bool
	}{
		"shown":   {says: yes, logs: func(u, m types.Log) []types.Log { return []types.Log{u, m} }, paid: true},
		"claimed": {says: yes, unknown: true},
		"used for something else": {says: yes, unknown: true,
			logs: func(u, _ types.Log) []types.Log { return []types.Log{u} }},
		"moved by another authorization": {says: yes, unknown: true, logs: func(u, m types.Log) []types.Log {
			m.Index = u.Index + 2 // the event of a transfer MUST follow that of its authorization
			return []types.Log{u, m}
		}},
		"canceled, then moved": {says: yes, unknown: true, logs: func(u, m types.Log) []types.Log {
			u.Topics = append([]common.Hash{topic(eventAuthorizationCanceled)}, u.Topics[1:]...)
			return []types.Log{u, m}
		}},
		"refused, and shown": {says: no, paid: true,
			logs: func(u, m types.Log) []types.Log { return []types.Log{u, m} }},
		"no answer, and shown": {says: lost, paid: true,
			logs: func(u, m types.Log) []types.Log { return []types.Log{u, m} }},
		"no answer, unused":          {says: lost, unknown: true},
		"no answer, unused and over": {says: lost, final: paidAt + 61, dead: true},
		"refused, unused":            {says: no},
		"refused, used in a final block": {says: no, dead: true,
			logs: func(u, _ types.Log) []types.Log { return []types.Log{u} }},
		"refused, used in a block that can be replaced": {says: no, unknown: true,
			logs: func(u, _ types.Log) []types.Log {
				u.BlockNumber = 101
				return []types.Log{u}
			}},
		"refused, used where it is not found": {says: no, unknown: true,
			logs: func(types.Log, types.Log) []types.Log { return nil }},
	} {
		p, r := signedPayment(t)
		c := &scripted{says: willing(), finalSeconds: x.final}
		if x.logs != nil {
			c.says[sigNonceState], c.moves = uintWord(1), x.logs(settledLogs(&p, &r))
		}
		s, err := (&Confirmed{Facilitator: x.says, Verifier: verifying(c), History: c,
			Wait: time.Nanosecond}).Settle(t.Context(), p, r)
		if errors.Is(err, ErrUnknownEnd) != x.unknown || s.Success != x.paid || s.Dead != x.dead || err != nil != x.unknown {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
		if x.paid && s.Transaction != common.HexToHash("0x77").Hex() {
			t.Errorf("%s: names %s, the chain shows another transaction", name, s.Transaction)
		}
	}
	p, r := signedPayment(t)
	c := &scripted{says: willing()}
	if s, err := (&Confirmed{Facilitator: yes, Verifier: verifying(c), Wait: time.Nanosecond}).Settle(t.Context(), p,
		r); !errors.Is(err, ErrUnknownEnd) || s.Success {
		t.Errorf("without a history: %+v, %v", s, err)
	}
}

// TestConfirmedVerify: a payment whose authorization is used is not valid, whatever the facilitator says, because the
// chain would seem to show its settlement. What the facilitator refuses stays refused.
func TestConfirmedVerify(t *testing.T) {
	t.Parallel()
	p, r := signedPayment(t)
	yes, no := saying{v: Verification{IsValid: true}}, saying{v: Verification{InvalidReason: ReasonSignature}}
	for name, x := range map[string]struct {
		says   saying
		state  []byte
		reason Reason
		down   bool
	}{
		"unused":          {yes, uintWord(0), "", false},
		"used":            {yes, uintWord(1), ReasonNonceUsed, false},
		"chain is down":   {yes, nil, "", true},
		"refused":         {no, nil, ReasonSignature, false},
		"refused by none": {saying{e: ErrUnavailable}, uintWord(0), "", true},
	} {
		c := &scripted{says: willing()}
		c.says[sigNonceState] = x.state
		v, err := (&Confirmed{Facilitator: x.says, Verifier: verifying(c)}).Verify(t.Context(), p, r)
		if errors.Is(err, ErrUnavailable) != x.down || v.InvalidReason != x.reason ||
			v.IsValid != (x.reason == "" && !x.down) {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

// outcomes is a Settler that knows an outcome, or sends with one.
type outcomes struct {
	known, sent Outcome
	err         error
	sends       *int
}

// Outcome implements Settler.
func (o outcomes) Outcome(context.Context, *Transfer) (Outcome, error) { return o.known, nil }

// Send implements Settler.
func (o outcomes) Send(context.Context, *Transfer) (Outcome, error) {
	*o.sends++
	return o.sent, o.err
}

// TestLocalSettlesOnce: a payment that was settled before is answered without a transaction; its authorization pays
// for nothing else. What this facilitator does not serve is not sent.
func TestLocalSettlesOnce(t *testing.T) {
	t.Parallel()
	p, r := signedPayment(t)
	paid := Outcome{Known: true, Paid: true, Transaction: common.HexToHash("0x77"), Amount: r.Amount, Payee: r.PayTo,
		Token: r.Asset}
	other, failed := paid, paid
	other.Payee, failed.Paid = common.HexToAddress("0xc3"), false
	for name, x := range map[string]struct {
		outcomes
		chains []uint64
		tokens func(uint64, common.Address) bool
		reason Reason
		sends  int
		err    error
	}{
		"new":          {outcomes{sent: paid}, []uint64{8453}, nil, "", 1, nil},
		"settled":      {outcomes{known: paid}, []uint64{8453}, nil, "", 0, nil},
		"another's":    {outcomes{known: other}, []uint64{8453}, nil, ReasonNonceUsed, 0, nil},
		"failed":       {outcomes{sent: failed}, []uint64{8453}, nil, ReasonTransactionState, 1, nil},
		"end is open":  {outcomes{err: ErrUnknownEnd}, []uint64{8453}, nil, "", 1, ErrUnknownEnd},
		"other chains": {outcomes{sent: paid}, []uint64{1, 10}, nil, ReasonInvalidNetwork, 0, nil},
		"other tokens": {outcomes{sent: paid}, []uint64{8453}, func(uint64, common.Address) bool { return false },
			ReasonInvalidRequirements, 0, nil},
	} {
		sends := 0
		x.outcomes.sends = &sends
		l := &Local{Verifier: verifying(&scripted{says: willing()}), Settler: x.outcomes, Chains: x.chains,
			Tokens: x.tokens}
		s, err := l.Settle(t.Context(), p, r)
		if !errors.Is(err, x.err) || s.ErrorReason != x.reason || sends != x.sends ||
			s.Success != (x.reason == "" && x.err == nil) || s.Payer != PayerOf(&p) {
			t.Errorf("%s: %+v, %v, sent %d times", name, s, err, sends)
		}
	}
}

// TestSupported: version 1 has the chains that it can name, and the scheme upto those on which an account settles.
func TestSupported(t *testing.T) {
	t.Parallel()
	l := &Local{Chains: []uint64{8453, 31337}, Verifier: &Verifier{Accounts: func(id uint64) []common.Address {
		if id == 8453 {
			return []common.Address{common.HexToAddress("0xf1")}
		}
		return nil
	}}}
	s, err := l.Supported(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, k := range s.Kinds {
		kinds = append(kinds, fmt.Sprintf("%d %s %s", k.X402Version, k.Scheme, k.Network))
	}
	want := []string{"2 exact eip155:8453", "1 exact base", "2 upto eip155:8453", "2 exact eip155:31337"}
	if !slices.Equal(kinds, want) || len(s.Signers["eip155:*"]) != 1 {
		t.Errorf("%q, signers %v", kinds, s.Signers)
	}
}

// TestEndOfPermits: Permit2 has no event that names a permit. The transaction of a payment is known by what it calls,
// and a payment that nothing settled is dead only where every transfer that it could be names another permit.
func TestEndOfPermits(t *testing.T) {
	t.Parallel()
	permit := &Permit{From: common.HexToAddress("0xc1"), Permitted: Permitted{paidToken, NewAmount(5)},
		Spender: ExactProxy, Nonce: NewAmount(1<<20 + 9), Deadline: NewAmount(paidAt + 60),
		Witness: Witness{To: common.HexToAddress("0xb2"), ValidAfter: NewAmount(paidAt)}}
	other := *permit
	other.Nonce = NewAmount(10)
	own := subcall{to: ExactProxy, calldata: proxyCall(permit, make([]byte, 65), NewAmount(5))}
	others := subcall{to: ExactProxy, calldata: proxyCall(&other, make([]byte, 65), NewAmount(5))}
	unknown := subcall{to: common.HexToAddress("0xd1"), calldata: own.calldata}
	for name, x := range map[string]struct {
		calls []subcall // of the transactions by which the payer paid the payee, one in each block
		over  bool      // the permit has ended in a final block
		found int       // the call that is its transaction, from 1; 0 for none
		dead  bool
	}{
		"own":                       {[]subcall{own}, true, 1, false},
		"own among others":          {[]subcall{others, own, unknown}, true, 2, false},
		"another permit, over":      {[]subcall{others}, true, 0, true},
		"another permit, not over":  {[]subcall{others}, false, 0, false},
		"inside of another call":    {[]subcall{others, unknown}, true, 0, false},
		"no transfer, over":         {nil, true, 0, true},
		"no transfer, and not over": {nil, false, 0, false},
	} {
		c := &scripted{says: map[string][]byte{sigNonceBitmap: uintWord(1 << 9)}, calls: map[common.Hash]subcall{}}
		if x.over {
			c.finalSeconds = paidAt + 61
		}
		for i, call := range x.calls {
			hash := common.BigToHash(NewAmount(uint64(i + 1)).Big())
			c.calls[hash] = call
			c.moves = append(c.moves, types.Log{Address: paidToken, BlockNumber: uint64(10 + i), TxHash: hash,
				Topics: []common.Hash{topic(eventTransfer), common.BytesToHash(permit.From[:]),
					common.BytesToHash(permit.Witness.To[:])}, Data: uintWord(5)})
		}
		transfer := &Transfer{Scheme: SchemeExact, ChainID: 8453, Token: paidToken, From: permit.From,
			To: permit.Witness.To, Amount: NewAmount(5), Nonce: common.BytesToHash(word(permit.Nonce)),
			Since: permit.Witness.ValidAfter, Until: permit.Deadline}
		e, err := verifying(c).end(t.Context(), c, transfer)
		if err != nil || !e.Spent || e.Dead != x.dead ||
			e.Transaction != common.BigToHash(NewAmount(uint64(x.found)).Big()) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if transfer := (&Transfer{Nonce: common.BytesToHash(word(permit.Nonce))}); transfer.bit() != 9 ||
		!used(uintWord(1<<9), transfer.bit()) || used(uintWord(1<<8), 9) || used(nil, 9) || used(make([]byte, 64), 9) {
		t.Error("a nonce is another bit of its word")
	}
}
