package x402

import (
	"bytes"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
)

// Transfer is a payment that was verified, and the transaction that settles it.
type Transfer struct {
	Scheme   string
	ChainID  uint64
	Token    common.Address
	From, To common.Address
	Amount   Amount // what is charged
	// Nonce is the authorization's, which the payer uses once: of EIP-3009, or of Permit2.
	Nonce   common.Hash
	ByToken bool // by EIP-3009; false: by Permit2
	// Since and Until are when the authorization begins and ends, in seconds since 1970.
	Since, Until Amount
	// Target and Data are the transaction that settles the payment.
	Target common.Address // zero before the payment is verified
	Data   []byte
}

// ID names the payer's authorization, whose transaction is sent once: two payments with the same
// ID are the same or contradict each other, and the chain takes one of them at most. Nonces of
// Permit2 are the payer's for all tokens.
func (t *Transfer) ID() string {
	of := t.Token
	if !t.ByToken {
		of = Permit2
	}
	return "x402:" + Network(t.ChainID) + ":" + lower(of) + ":" + lower(t.From) + ":" + t.Nonce.Hex()
}

// lower is an address in lower case.
func lower(a common.Address) string {
	text, _ := a.MarshalText() // never fails
	return string(text)
}

// Paid reports whether the logs of a transaction show the transfer: the token's own event of this
// amount from the payer to the payee. A charge of 0 needs none.
func (t *Transfer) Paid(logs []types.Log) bool {
	if t.Amount == (Amount{}) {
		return true
	}
	topics := []common.Hash{crypto.Keccak256Hash([]byte(eventTransfer)), common.BytesToHash(t.From[:]),
		common.BytesToHash(t.To[:])}
	return slices.ContainsFunc(logs, func(l types.Log) bool {
		return l.Address == t.Token && slices.Equal(l.Topics, topics) && readAmount(l.Data) == t.Amount
	})
}

// tokenCall is the call of an EIP-3009 token: in the form that every token has where an account's
// key signed, else with the signature as bytes.
func tokenCall(a *Authorization, sig []byte, byKey bool) []byte {
	if byKey {
		return pack(sigTransferSplit, nil, a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce, sig[64],
			common.BytesToHash(sig[:32]), common.BytesToHash(sig[32:64]))
	}
	return pack(sigTransferBytes, sig, a.From, a.To, a.Value, a.ValidAfter, a.ValidBefore, a.Nonce)
}

// proxyCall is the call of the proxy that a permit names. charge is for the scheme upto.
func proxyCall(p *Permit, sig []byte, charge Amount) []byte {
	if p.Witness.Facilitator != nil {
		return pack(sigUptoSettle, sig, p.Permitted.Token, p.Permitted.Amount, p.Nonce, p.Deadline, charge, p.From,
			p.Witness.To, *p.Witness.Facilitator, p.Witness.ValidAfter)
	}
	return pack(sigExactSettle, sig, p.Permitted.Token, p.Permitted.Amount, p.Nonce, p.Deadline, p.From, p.Witness.To,
		p.Witness.ValidAfter)
}

// deploying puts the deployment of the payer's wallet before a transfer, in one transaction of
// Multicall3. The deployment may fail: somebody else may have done it.
func (t *Transfer) deploying(s *signature) {
	t.Data = packCalls(subcall{s.factory, true, s.deployment}, subcall{t.Target, false, t.Data})
	t.Target = Multicall3
}

// settlesBy returns the contract that a settling transaction calls in the end, and the call's
// data: the inner ones where it deploys the payer's wallet first. ok is false for a transaction
// that this package does not make.
func settlesBy(target common.Address, data []byte) (contract common.Address, call []byte, ok bool) {
	if target == Multicall3 {
		if target, data, ok = lastCall(data); !ok {
			return common.Address{}, nil, false
		}
	}
	settling := []string{sigTransferSplit, sigTransferBytes}
	switch target {
	case ExactProxy:
		settling = []string{sigExactSettle}
	case UptoProxy:
		settling = []string{sigUptoSettle}
	}
	known := slices.ContainsFunc(settling, func(s string) bool { return bytes.HasPrefix(data, selector(s)) })
	return target, data, known
}

// Charge is what a settling transaction moves if it succeeds. Values of it can be compared.
type Charge struct {
	Token, To common.Address
	Amount    Amount
}

// Charged reads what a settling transaction moves. ok is false for a transaction that this package
// does not make.
func Charged(target common.Address, data []byte) (c Charge, ok bool) {
	contract, call, ok := settlesBy(target, data)
	if !ok || len(call) < 4+7*32 {
		return c, false
	}
	at := func(i int) []byte { return call[4+32*i : 4+32*(i+1)] }
	switch contract {
	case ExactProxy:
		return Charge{common.BytesToAddress(at(0)), common.BytesToAddress(at(5)), readAmount(at(1))}, true
	case UptoProxy:
		return Charge{common.BytesToAddress(at(0)), common.BytesToAddress(at(6)), readAmount(at(4))}, true
	}
	return Charge{contract, common.BytesToAddress(at(1)), readAmount(at(2))}, true
}

// lastCall decodes the second call of packCalls; only the encoding of packCalls is accepted.
func lastCall(data []byte) (to common.Address, call []byte, ok bool) {
	if len(data) < 4+4*32 || string(data[:4]) != string(selector(sigAggregate)) {
		return to, nil, false
	}
	list := data[4+64:]
	if readAmount(data[4:36]) != NewAmount(32) || readAmount(data[36:68]) != NewAmount(2) {
		return to, nil, false
	}
	first, ok1 := itemAt(list, list[:32])
	second, ok2 := itemAt(list, list[32:64])
	if !ok1 || !ok2 || string(packCalls(first, second)) != string(data) {
		return to, nil, false
	}
	return second.to, second.calldata, true
}

// itemAt decodes one call of Multicall3.
func itemAt(list, offset []byte) (c subcall, ok bool) {
	at := readAmount(offset)
	if at.Cmp(NewAmount(uint64(len(list)))) > 0 || uint64(len(list))-at.Uint64() < 96 {
		return c, false
	}
	item := list[at.Uint64():]
	call, ok := bytesAt(item, item[64:96])
	return subcall{common.BytesToAddress(item[:32]), item[63] == 1, call}, ok
}
