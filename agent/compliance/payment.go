package compliance

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/signer/core/apitypes"

	"repute"
	"repute/agent/signed"
	"repute/x402"
)

// demanded returns a skip where no capability demanded a payment.
// Every check about payments calls it first.
func (s *suite) demanded() error {
	switch {
	case s.o.Mode == Shutdown:
		return notAccepting
	case s.demand == nil:
		return skip("no capability demanded a payment; give --capability and --input")
	}
	return nil
}

// amount is a decimal in whole units, hash one of 32 bytes.
var (
	amount = regexp.MustCompile(`^\d+(\.\d+)?$`)
	hash   = regexp.MustCompile(`^0x[0-9a-fA-F]{64}$`)
)

// checkPaymentHeaders: the headers of the 402 answer by which a client without x402 can pay. Their form is checked,
// and not that they agree with the demand, since an agent may offer several tokens and chains.
func (s *suite) checkPaymentHeaders(context.Context) (string, error) {
	if err := s.demanded(); err != nil {
		return "", err
	}
	h := s.demand.header
	if _, err := repute.ParseAddress("X-Payment-Address", h.Get("X-Payment-Address")); err != nil {
		return "", err
	}
	for name, form := range map[string]*regexp.Regexp{"X-Payment-Amount": amount, "X-Payment-TaskHash": hash,
		"X-Payment-Currency": regexp.MustCompile(`\S`), "X-Payment-Chain": regexp.MustCompile(`\S`)} {
		if !form.MatchString(h.Get(name)) {
			return "", fmt.Errorf("%s of the 402 answer is %.80q", name, h.Get(name))
		}
	}
	return fmt.Sprintf("%s %s on %s", h.Get("X-Payment-Amount"), h.Get("X-Payment-Currency"),
		h.Get("X-Payment-Chain")), nil
}

// checkPaymentBody: the body of the 402 answer is an error of its own kind, beside what x402 adds to it.
func (s *suite) checkPaymentBody(context.Context) (string, error) {
	if err := s.demanded(); err != nil {
		return "", err
	}
	body, err := s.demand.object()
	if err != nil {
		return "", err
	}
	if text, ok := body["message"].(string); body["error"] != "payment_required" || !ok || text == "" {
		return "", fmt.Errorf("the body of the 402 answer has error %v and message %v", body["error"], body["message"])
	}
	return "payment_required", nil
}

// checkTaskHash: the same input in another layout is the same task, another input another one.
//
// The hash is over the canonical JSON of the input, so that a client may format its request anew when it pays.
func (s *suite) checkTaskHash(ctx context.Context) (string, error) {
	if err := s.demanded(); err != nil {
		return "", err
	}
	first := s.demand.header.Get("X-Payment-TaskHash")
	if first == "" {
		return "", skip("the 402 answer has no X-Payment-TaskHash")
	}
	var layout bytes.Buffer
	if err := json.Indent(&layout, s.paid.input, " ", "  "); err != nil {
		return "", fmt.Errorf("input: %w", err)
	}
	again := s.call(ctx, request{s.paid.name, layout.Bytes()}, nil)
	if err := again.is(http.StatusPaymentRequired); err != nil {
		return "", err
	}
	if got := again.header.Get("X-Payment-TaskHash"); got != first {
		return "", fmt.Errorf("the same input in another layout has the task hash %.80s, before %.80s", got, first)
	}
	if text, ok := other(s.paid.input); ok {
		a := s.call(ctx, request{s.paid.name, text}, nil)
		if a.err == nil && a.header.Get("X-Payment-TaskHash") == first {
			return "", fmt.Errorf("another input has the same task hash %.80s", first)
		}
	}
	return first, nil
}

// v2 is the demand in the header of version 2.
// A missing header is an error, while an answer that does not offer version 1 is skipped by v1.
func (s *suite) v2() (*x402.PaymentRequired, error) {
	if err := s.demanded(); err != nil {
		return nil, err
	}
	text := s.demand.header.Get(x402.HeaderRequired)
	if text == "" {
		return nil, fmt.Errorf("the 402 answer has no header %s", x402.HeaderRequired)
	}
	d, err := x402.DecodeRequired(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x402.HeaderRequired, err)
	}
	return &d, nil
}

// v1 is the demand in the body of version 1.
func (s *suite) v1() (*x402.PaymentRequired, error) {
	if err := s.demanded(); err != nil {
		return nil, err
	}
	body, err := s.demand.object()
	if err != nil || body["x402Version"] == nil {
		return nil, skip("x402 version 1 is not offered in the body of the 402 answer")
	}
	if ways, ok := body["accepts"].([]any); ok && len(ways) == 0 {
		return nil, skip("version 1 of x402 has no name for the network")
	}
	d, version, err := x402.DemandOf(http.Header{}, s.demand.body)
	if err != nil || version != x402.V1 {
		return nil, fmt.Errorf("the body of the 402 answer: version %d, %w", version, err)
	}
	return &d, nil
}

// checkV2: each way to pay of version 2 can be understood.
func (s *suite) checkV2(context.Context) (string, error) { return ways(s.v2()) }

// checkV1: each way to pay of version 1 can be understood, where that version is offered.
func (s *suite) checkV1(context.Context) (string, error) { return ways(s.v1()) }

// ways counts the ways to pay of a demand, and returns the error of the first that is wrong.
func ways(d *x402.PaymentRequired, err error) (string, error) {
	if err != nil {
		return "", err
	}
	for i := range d.Accepts {
		if err := d.Accepts[i].Check(); err != nil {
			return "", fmt.Errorf("accepts[%d]: %w", i, err)
		}
	}
	return fmt.Sprintf("%d ways to pay", len(d.Accepts)), nil
}

// payable returns the demand and a way to pay, and skips where there is none.
//
// A way of the scheme exact with the domain of the token in extra can be signed without asking the token; others are
// passed over. Errors of the demand skip, because checkV2 reports them.
func (s *suite) payable() (*x402.PaymentRequired, x402.Requirements, error) {
	d, err := s.v2()
	if err != nil {
		return nil, x402.Requirements{}, orSkip(err)
	}
	for _, r := range d.Accepts {
		terms, err := r.Terms()
		if err == nil && r.Check() == nil && r.Scheme == x402.SchemeExact && terms.Name != "" {
			return d, r, nil
		}
	}
	return nil, x402.Requirements{}, skip("no way to pay is of the scheme exact with EIP-3009")
}

// orSkip skips a check that needs the demand whose check has failed with err.
func orSkip(err error) error { return skip("it needs a demand: " + err.Error()) }

// stranger returns the signer of the payments that the runtime has to refuse: a new key without funds. A runtime could
// settle them all the same, and turn a changed bit back, so that they are never signed by Options.Payer.
func stranger() (x402.Signer, error) {
	key, err := crypto.GenerateKey()
	return local{key}, err
}

// local signs with a key of memory.
type local struct{ key *ecdsa.PrivateKey }

// Address implements x402.Signer.
func (l local) Address() common.Address { return crypto.PubkeyToAddress(l.key.PublicKey) }

// SignTyped implements x402.Signer.
func (l local) SignTyped(_ context.Context, data apitypes.TypedData) ([]byte, error) {
	digest, err := signed.Digest(data)
	if err != nil {
		return nil, err
	}
	return crypto.Sign(digest[:], l.key)
}

// header is a payment as a request carries it.
func header(p x402.Payment) (http.Header, error) {
	text, err := x402.Encode(p)
	name := x402.HeaderPayment
	if p.Version == x402.V1 {
		name = x402.HeaderPaymentV1
	}
	return http.Header{http.CanonicalHeaderKey(name): {text}}, err
}

// checkMalformed sends payments that are none. A runtime may not know the headers of other clients,
// and then demands a payment.
//
// Where version 2 is offered, its header MUST be understood, and 402 is no refusal of it.
func (s *suite) checkMalformed(ctx context.Context) (string, error) {
	if err := s.demanded(); err != nil {
		return "", err
	}
	for _, name := range []string{x402.HeaderPayment, x402.HeaderPaymentV1, signed.HeaderReceipt} {
		statuses := []int{http.StatusBadRequest, http.StatusPaymentRequired}
		if name == x402.HeaderPayment && s.demand.header.Get(x402.HeaderRequired) != "" {
			statuses = statuses[:1]
		}
		a := s.call(ctx, s.paid, http.Header{http.CanonicalHeaderKey(name): {"x"}})
		if _, err := a.refusal(statuses...); err != nil {
			return "", fmt.Errorf("a malformed %s: %w", name, err)
		}
	}
	return "refused", nil
}

// checkUnsignedReceipt sends a receipt of the specification whose signature is not one.
//
// The amount is far above any price, so that the receipt cannot be refused for paying too little: only its signature
// is wrong.
func (s *suite) checkUnsignedReceipt(ctx context.Context) (string, error) {
	if err := s.demanded(); err != nil {
		return "", err
	}
	h := s.demand.header
	raw := fmt.Appendf(nil, `{"from":"0x00000000000000000000000000000000000000aa","to":%q,"amount":"%s","currency":%q,`+
		`"taskHash":%q,"timestamp":%d,"signature":"0x%s"}`, h.Get("X-Payment-Address"),
		new(big.Int).Lsh(big.NewInt(1), 100),
		h.Get("X-Payment-Currency"), h.Get("X-Payment-TaskHash"), time.Now().Unix(), strings.Repeat("00", 65))
	a := s.call(ctx, s.paid,
		http.Header{http.CanonicalHeaderKey(signed.HeaderReceipt): {base64.StdEncoding.EncodeToString(raw)}})
	return a.refusal(http.StatusBadRequest, http.StatusUnauthorized, http.StatusPaymentRequired)
}

// refused sends a payment that is changed after or before its signature.
//
// before changes the requirement that is signed, after the payment that is sent, which is given the runtime's own
// requirement. A runtime that answers 200 fails the check; whether it has taken the money is not looked at.
func (s *suite) refused(ctx context.Context, before func(*x402.Requirements), after func(*x402.Payment,
	x402.Requirements)) (string,
	error) {
	d, r, err := s.payable()
	if err != nil {
		return "", err
	}
	by, err := stranger()
	if err != nil {
		return "", err
	}
	asked := r
	before(&asked)
	p, err := x402.Pay(ctx, by, d, x402.V2, asked, time.Now())
	if err != nil {
		return "", orSkip(err)
	}
	after(&p, r)
	h, err := header(p)
	if err != nil {
		return "", err
	}
	return s.call(ctx, s.paid, h).refusal(http.StatusPaymentRequired, http.StatusBadRequest)
}

// checkForged sends a payment whose signature was changed by one bit, which therefore is of another account.
// The flipped bit is in r of the signature, so that its length and form stay right and a runtime has to recover the
// signer to see it.
func (s *suite) checkForged(ctx context.Context) (string, error) {
	return s.refused(ctx, func(*x402.Requirements) {},
		func(p *x402.Payment, _ x402.Requirements) { p.Payload.Signature[4] ^= 1 })
}

// checkOtherPrice echoes the requirement with another price, and signs less than the price.
//
// The first payment is consistent in itself and too small. The second one claims the right price in accepted, while
// its signature is over less: a runtime that compares only what is claimed takes it.
func (s *suite) checkOtherPrice(ctx context.Context) (string, error) {
	less := func(r *x402.Requirements) {
		if n := r.Amount.Big(); n.Sign() > 0 {
			r.Amount, _ = x402.AmountOf(n.Sub(n, big.NewInt(1))) // still an amount
		}
	}
	if _, err := s.refused(ctx, less, func(*x402.Payment, x402.Requirements) {}); err != nil {
		return "", err
	}
	return s.refused(ctx, less, func(p *x402.Payment, r x402.Requirements) { p.Accepted = r })
}

// pay pays by a version and returns the header and the answer.
//
// The first way whose domain is known is taken, and no other is tried where it costs more than MaxPay.
func (s *suite) pay(ctx context.Context, d *x402.PaymentRequired, version int) (http.Header, *answer, error) {
	for _, r := range d.Accepts {
		terms, err := r.Terms()
		if err != nil || r.Scheme != x402.SchemeExact || terms.Name == "" {
			continue
		}
		if n := r.Amount.Big(); !n.IsUint64() || n.Uint64() > s.o.MaxPay {
			return nil, nil, skip(fmt.Sprintf("it costs %s units, at most %d are paid (--max-pay)", n, s.o.MaxPay))
		}
		p, err := x402.Pay(ctx, s.o.Payer, d, version, r, time.Now())
		if err != nil {
			return nil, nil, err
		}
		h, err := header(p)
		if err != nil {
			return nil, nil, err
		}
		return h, s.patient(ctx, s.paid, h), nil
	}
	return nil, nil, skip("no way to pay is of the scheme exact with EIP-3009")
}

// patient sends a paid request again while its end is not known.
// 503 with a payment means that its settlement is not known yet: the same payment MUST be sent again, since a new one
// could be charged twice.
func (s *suite) patient(ctx context.Context, q request, h http.Header) *answer {
	a := s.call(ctx, q, h)
	for range 10 {
		if a.err != nil || a.status != http.StatusServiceUnavailable {
			break
		}
		select {
		case <-ctx.Done():
			return a
		case <-time.After(time.Second):
		}
		a = s.call(ctx, q, h)
	}
	return a
}

// checkPaid pays once by each version that is offered.
//
// The payment of version 2 is kept for the checks of replays. That of version 1 is a second charge, and its failure
// fails the check after the first was paid.
func (s *suite) checkPaid(ctx context.Context) (string, error) {
	if s.o.Payer == nil {
		return "", skip("no key pays; give --pay-key-file")
	}
	d, _, err := s.payable()
	if err != nil {
		return "", err
	}
	h, a, err := s.pay(ctx, d, x402.V2)
	if err != nil {
		return "", err
	}
	settlement, err := s.settledBy(a, x402.HeaderResponse)
	if err != nil {
		return "", err
	}
	s.payment, s.settled = h, a
	old, err := s.v1()
	if err != nil {
		return "paid by version 2 in transaction " + settlement.Transaction, nil
	}
	if _, a, err = s.pay(ctx, old, x402.V1); err == nil {
		_, err = s.settledBy(a, x402.HeaderResponseV1)
	}
	return "paid by versions 1 and 2, in transaction " + settlement.Transaction, err
}

// settledBy reads the settlement of a paid answer, which MUST be about the task that was paid for.
// A settlement without a transaction cannot be looked up, and counts as none.
func (s *suite) settledBy(a *answer, name string) (*x402.Settlement, error) {
	if err := a.is(http.StatusOK); err != nil {
		return nil, err
	}
	settlement, err := x402.DecodeSettlement(a.header.Get(name))
	if err != nil {
		return nil, fmt.Errorf("header %s of the paid answer: %w", name, err)
	}
	task, asked := a.header.Get(signed.HeaderTaskHash), s.demand.header.Get("X-Payment-TaskHash")
	switch {
	case !settlement.Success || settlement.Transaction == "":
		return nil, fmt.Errorf("header %s of the paid answer says that nothing was settled", name)
	case task != "" && asked != "" && !strings.EqualFold(task, asked):
		return nil, fmt.Errorf("the paid answer is about the task %.80s, paid is for %.80s", task, asked)
	}
	return &settlement, nil
}

// checkReplay sends the payment again: the same answer, of the same settlement.
//
// A runtime without the settlement in its second answer passes, as the bodies are equal; one that names another
// transaction has charged twice.
func (s *suite) checkReplay(ctx context.Context) (string, error) {
	if s.settled == nil {
		return "", skip("nothing was paid")
	}
	a := s.patient(ctx, s.paid, s.payment)
	if err := a.is(http.StatusOK); err != nil {
		return "", fmt.Errorf("the same payment again: %w", err)
	}
	first, _ := x402.SettlementOf(s.settled.header)
	again, given := x402.SettlementOf(a.header)
	switch {
	case !bytes.Equal(a.body, s.settled.body):
		return "", fmt.Errorf("the same payment gets another answer: %.100s", a.body)
	case given && again.Transaction != first.Transaction:
		return "", fmt.Errorf("the same payment is charged again, in %.80s", again.Transaction)
	}
	return "the same answer", nil
}

// checkReplayOther sends the payment with another input.
//
// All three statuses refuse: a conflict with the payment's task, a new demand, or a payment that does not fit.
func (s *suite) checkReplayOther(ctx context.Context) (string, error) {
	if s.settled == nil {
		return "", skip("nothing was paid")
	}
	input, ok := other(s.paid.input)
	if !ok {
		return "", skip("the input has no text that could be changed")
	}
	a := s.call(ctx, request{s.paid.name, input}, s.payment)
	return a.refusal(http.StatusConflict, http.StatusPaymentRequired, http.StatusBadRequest)
}

// checkReceipts checks that the log of payments contains the payment of this run.
//
// Without a payment in this run only the form of the list is checked.
func (s *suite) checkReceipts(ctx context.Context) (string, error) {
	if s.state.AgentID == "" {
		return "", skip("the agent's id is not known")
	}
	a := s.ask(ctx, http.MethodGet, "/agent/"+s.state.AgentID+"/receipts", nil, nil)
	if a.err == nil && a.status == http.StatusNotFound {
		return "", skip("receipts are not offered")
	}
	if err := a.is(http.StatusOK); err != nil {
		return "", err
	}
	var list []struct {
		ReceiptID, TaskHash string
		Timestamp           *float64
	}
	if err := json.Unmarshal(a.body, &list); err != nil {
		return "", fmt.Errorf("receipts: the body is no array of them: %w", err)
	}
	found := s.settled == nil
	for i, r := range list {
		if r.ReceiptID == "" || !hash.MatchString(r.TaskHash) || r.Timestamp == nil {
			return "", fmt.Errorf("receipts[%d]: receiptId, taskHash or timestamp is missing", i)
		}
		found = found || strings.EqualFold(r.TaskHash, s.demand.header.Get("X-Payment-TaskHash"))
	}
	if !found {
		return "", fmt.Errorf("receipts do not have the task that was paid for")
	}
	return fmt.Sprintf("%d receipts", len(list)), nil
}
