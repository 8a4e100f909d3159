package missing

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/chaindb"
	"repute/store/verifydb"
)

// New returns a gap of events of a kind in some blocks. The subject tells gaps of one kind apart.
func New(kind repute.EventKind, subject string, r repute.BlockRange, reason string) chaindb.Gap {
	r.To = max(r.From, r.To)
	return chaindb.Gap{Subject: subject, Gap: repute.Gap{Kind: kind, Blocks: r, Reason: reason}}
}

// OfAgent returns a gap of events about one agent.
func OfAgent(kind repute.EventKind, id repute.TokenID, r repute.BlockRange, reason string) chaindb.Gap {
	h := New(kind, id.Dec(), r, reason)
	h.Agent = &id
	return h
}

// OfClient returns a gap of events about one client's ratings of one agent.
func OfClient(kind repute.EventKind, id repute.TokenID, client common.Address, r repute.BlockRange,
	reason string) chaindb.Gap {
	h := OfAgent(kind, id, r, reason)
	h.Client, h.Subject = &client, id.Dec()+"/"+client.Hex()
	return h
}

// OfOperator returns a gap of approvals of an operator by an owner, who is kept as the client.
func OfOperator(o verifydb.OperatorThen, r repute.BlockRange, approved bool) chaindb.Gap {
	h := New(repute.KindApprovalForAll, o.Owner.Hex()+"/"+o.Operator.Hex(), r,
		fmt.Sprintf("isApprovedForAll of %s for %s is %t, stored %t", o.Operator, o.Owner, approved, o.Approved))
	h.Client = &o.Owner
	return h
}

// How the subjects of gaps begin that no comparison of states found.
const (
	// WaitSubject: a stored event waits for the missing one.
	WaitSubject = "waits:"
	// BlockSubject: a block holds other events than are stored.
	BlockSubject = "block:"
)

// Waiting returns the gap that a stored event waits for. The missing event must lie between the
// start of the chain and the event that waits. It reports false when the event names no agent.
func Waiting(w verifydb.Waiting, event repute.Event, start uint64) (chaindb.Gap, bool) {
	r := repute.BlockRange{From: start, To: w.Log.BlockNumber}
	reason := fmt.Sprintf("log %d of block %d waits: %s", w.Log.Index, w.Log.BlockNumber, w.Reason)
	var h chaindb.Gap
	switch e := event.(type) {
	case repute.NewFeedback:
		h = OfClient(w.Kind, e.TokenID, e.Client, r, reason)
	case repute.FeedbackRevoked:
		h = OfClient(w.Kind, e.TokenID, e.Client, r, reason)
	case repute.ResponseAppended:
		h = OfClient(w.Kind, e.TokenID, e.Client, r, reason)
	default:
		id, ok := repute.AgentOf(event)
		if !ok {
			return h, false
		}
		h = OfAgent(w.Kind, id, r, reason)
	}
	if w.Kind == repute.KindTransfer {
		h.Client, h.Subject = nil, h.Agent.Dec()
	}
	h.Subject = WaitSubject + h.Subject
	return h, true
}

// OfState reports whether comparing states again shows if the gap is still there.
func OfState(h chaindb.Gap) bool {
	return !strings.HasPrefix(h.Subject, WaitSubject) && !strings.HasPrefix(h.Subject, BlockSubject)
}

// Index returns the index of the rating that a gap is about, 0 when it is about all ratings of the client.
func Index(h chaindb.Gap) uint64 {
	parts := strings.Split(h.Subject, "/")
	if len(parts) < 3 {
		return 0
	}
	n, err := strconv.ParseUint(parts[2], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Operator returns the owner and the operator that a gap of OfOperator is about. It reports false
// for other gaps.
func Operator(h chaindb.Gap) (verifydb.OperatorThen, bool) {
	owner, operator, ok := strings.Cut(h.Subject, "/")
	return verifydb.OperatorThen{Owner: common.HexToAddress(owner), Operator: common.HexToAddress(operator)},
		ok && h.Kind == repute.KindApprovalForAll && OfState(h)
}

// Contains reports whether one of the gaps is about the same missing event.
func Contains(all []chaindb.Gap, g chaindb.Gap) bool {
	return slices.ContainsFunc(all, func(x chaindb.Gap) bool { return x.Kind == g.Kind && x.Subject == g.Subject })
}
