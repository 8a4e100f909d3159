package synth

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts"
)

// legality replays events as the contracts would allow them and keeps what they
// amount to: a second opinion on the generator's state.
type legality struct {
	owner, wallet, approved map[uint64]common.Address
	uri                     map[uint64]string
	metadata                map[uint64]map[string]string
	last                    map[clientOf]uint64
	ratings                 map[ratingOf]repute.NewFeedback
	revoked                 map[ratingOf]bool
	responses               map[ratingOf][]common.Address
	requests                map[common.Hash]repute.ValidationRequest
	answers                 map[common.Hash]repute.ValidationResponse
	acting                  map[[2]common.Address]bool

	registered    map[uint64]bool
	tx            common.Hash
	updatedInTx   map[uint64]bool
	movedInTx     map[uint64]bool
	clearedInTx   map[uint64]bool
	hintedInTx    map[uint64]bool
	mintedInTx    map[uint64]bool
	registeredNow map[uint64]bool // the wallet event must follow
}

type clientOf struct {
	token  uint64
	client common.Address
}

type ratingOf struct {
	clientOf
	index uint64
}

func newLegality() *legality {
	return &legality{owner: map[uint64]common.Address{}, wallet: map[uint64]common.Address{},
		approved: map[uint64]common.Address{},
		uri:      map[uint64]string{}, metadata: map[uint64]map[string]string{}, last: map[clientOf]uint64{},
		ratings: map[ratingOf]repute.NewFeedback{}, revoked: map[ratingOf]bool{},
		responses: map[ratingOf][]common.Address{},
		requests:  map[common.Hash]repute.ValidationRequest{}, answers: map[common.Hash]repute.ValidationResponse{},
		acting: map[[2]common.Address]bool{}, registered: map[uint64]bool{}}
}

// check fails at the first event that the contracts would not have emitted.
func (l *legality) check(t *testing.T, records []repute.Record) {
	t.Helper()
	for i := range records {
		r := &records[i]
		if _, err := contracts.Decode(r.Log); err != nil {
			t.Fatal(err)
		}
		if r.Log.TxHash != l.tx {
			l.endTx(t)
			l.tx = r.Log.TxHash
		}
		if why := l.apply(r); why != "" {
			t.Fatalf("log %d of block %d: %s: %+v", r.Log.Index, r.Log.BlockNumber, why, r.Event)
		}
	}
	l.endTx(t)
	if len(l.registered) != len(l.owner) {
		t.Errorf("%d agents minted, %d registered", len(l.owner), len(l.registered))
	}
}

func (l *legality) endTx(t *testing.T) {
	t.Helper()
	if len(l.registeredNow) > 0 || len(l.hintedInTx) > 0 {
		t.Fatalf("transaction %s ended early: %v %v", l.tx, l.registeredNow, l.hintedInTx)
	}
	l.updatedInTx, l.movedInTx, l.mintedInTx = map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
	l.clearedInTx, l.hintedInTx, l.registeredNow = map[uint64]bool{}, map[uint64]bool{}, map[uint64]bool{}
}

func (l *legality) apply(r *repute.Record) string {
	want := identityAddress
	token, about := repute.AgentOf(r.Event)
	n := token.Uint64()
	_, exists := l.owner[n]
	switch e := r.Event.(type) {
	case repute.Transfer:
		if why := l.transfer(n, e, exists); why != "" {
			return why
		}
		exists = true
	case repute.MetadataUpdate:
		l.hintedInTx[n] = true
	case repute.Registered:
		return l.register(n, e)
	case repute.URIUpdated:
		if !l.hintedInTx[n] {
			return "URIUpdated without MetadataUpdate before it"
		}
		delete(l.hintedInTx, n)
		l.updatedInTx[n] = true
		l.uri[n] = e.URI
	case repute.MetadataSet:
		if why := l.setMetadata(n, e); why != "" {
			return why
		}
	case repute.Approval:
		if e.Owner != l.owner[n] {
			return "approval of another owner"
		}
		l.approved[n] = e.Approved
	case repute.ApprovalForAll:
		l.acting[[2]common.Address{e.Owner, e.Operator}] = e.Approved
	case repute.ValidationRequest, repute.ValidationResponse:
		want = validationAddress
	case repute.NewFeedback, repute.FeedbackRevoked, repute.ResponseAppended:
		want = reputationAddress
	default:
		want = r.Log.Address
	}
	if about && !exists {
		return "no such agent"
	}
	if r.Log.Address != want {
		return "of the wrong contract"
	}
	return l.applyOther(n, r)
}

func (l *legality) transfer(n uint64, e repute.Transfer, exists bool) string {
	if e.From == (common.Address{}) {
		if exists || n != uint64(len(l.owner)) {
			return "agents are not counted from 0"
		}
		l.mintedInTx[n] = true
	} else {
		if e.From != l.owner[n] || !l.clearedInTx[n] {
			return "transfer from a stranger, or without clearing the wallet"
		}
		delete(l.clearedInTx, n)
		l.movedInTx[n] = true
		delete(l.approved, n)
	}
	l.owner[n] = e.To
	return ""
}

func (l *legality) register(n uint64, e repute.Registered) string {
	if !l.mintedInTx[n] || l.registered[n] || e.URI != "" && !l.hintedInTx[n] {
		return "registration out of order"
	}
	delete(l.hintedInTx, n)
	if e.URI != "" || !l.updatedInTx[n] {
		l.uri[n] = e.URI
	}
	l.registered[n], l.registeredNow[n] = true, true
	return ""
}

func (l *legality) setMetadata(n uint64, e repute.MetadataSet) string {
	switch {
	case e.Key != "agentWallet":
		if l.metadata[n] == nil {
			l.metadata[n] = map[string]string{}
		}
		l.metadata[n][e.Key] = string(e.Value)
	case l.registeredNow[n]:
		delete(l.registeredNow, n)
		if len(e.Value) != 20 {
			return "registered without a wallet"
		}
		if !l.movedInTx[n] {
			l.wallet[n] = common.BytesToAddress(e.Value)
		}
	case len(e.Value) == 0:
		l.wallet[n] = common.Address{}
		l.clearedInTx[n] = true // a transfer may follow
	default:
		l.wallet[n] = common.BytesToAddress(e.Value)
	}
	return ""
}

// applyOther takes the events of the other two registries.
func (l *legality) applyOther(n uint64, r *repute.Record) string {
	switch e := r.Event.(type) {
	case repute.NewFeedback:
		of := clientOf{n, e.Client}
		if e.Index != l.last[of]+1 || e.Decimals > repute.MaxDecimals || e.Client == l.owner[n] {
			return "feedback out of order or of the owner"
		}
		l.last[of] = e.Index
		l.ratings[ratingOf{of, e.Index}] = e
	case repute.FeedbackRevoked:
		at := ratingOf{clientOf{n, e.Client}, e.Index}
		if _, ok := l.ratings[at]; !ok || l.revoked[at] {
			return "nothing to revoke"
		}
		l.revoked[at] = true
	case repute.ResponseAppended:
		at := ratingOf{clientOf{n, e.Client}, e.Index}
		if _, ok := l.ratings[at]; !ok || e.URI == "" {
			return "nothing to respond to"
		}
		l.responses[at] = append(l.responses[at], e.Responder)
	case repute.ValidationRequest:
		if _, ok := l.requests[e.RequestHash]; ok || e.Validator == (common.Address{}) {
			return "request exists"
		}
		l.requests[e.RequestHash] = e
	case repute.ValidationResponse:
		q, ok := l.requests[e.RequestHash]
		if !ok || q.Validator != e.Validator || q.TokenID != e.TokenID || e.Response > 100 {
			return "answer to no request"
		}
		l.answers[e.RequestHash] = e
	}
	return ""
}

func TestLegal(t *testing.T) { newLegality().check(t, records(t, get(t))) }
