package rows

import (
	"math"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/accountable"
	"repute/trust/flow"
	"repute/trust/rating"
)

// EvidenceOf converts stored data about an agent into evidence, without Related. Self and Named differ: an address in
// Self is the agent's own, so that its ratings are self-ratings, while one in Named was only approved by the owner.
// Self also has the former owners that are addresses of the present owner's identity. Where the events do not tell who
// registered the agent, the first known owner stands in for the registrar. The weights MUST be set: their graph says
// which addresses are one identity.
func EvidenceOf(s trustdb.Subject, w *flow.Weights, scales *rating.Scales) trust.Evidence {
	e := trust.Evidence{Agent: s.Agent, Block: s.Block, Owner: s.Owner, Weights: w, Scales: scales,
		Rows: make([]rating.Row, len(s.Rows))}
	e.Wallet, e.Tenures = s.Wallet, tenuresOf(s.Holders)
	e.Since = rating.PresentSince(e.Tenures, w.Graph())
	events := make([]accountable.OwnerEvent, len(s.Events))
	for i, event := range s.Events {
		events[i] = accountable.OwnerEvent(event)
	}
	e.Registrar, e.Actions = accountable.ReadActions(events)
	if e.Registrar == (common.Address{}) && len(s.Holders) > 0 {
		e.Registrar = s.Holders[0].Owner
	}
	if s.Wallet != (common.Address{}) {
		e.Self = append(e.Self, s.Wallet)
	}
	e.Self = append(e.Self, rating.MovedFrom(e.Tenures, e.Since)...)
	for _, a := range append([]common.Address{s.Approved}, s.Operators...) {
		if a != (common.Address{}) {
			e.Named = append(e.Named, a)
		}
	}
	for i, r := range s.Rows {
		e.Rows[i] = RowOf(r)
	}
	return e
}

// GoneOf converts the ratings that were revoked since the caller read them. They are in the same form as those of the
// evidence, because the caller finds its copies by block and log index.
func GoneOf(s *trustdb.Subject) []rating.Row {
	out := make([]rating.Row, len(s.Gone))
	for i, r := range s.Gone {
		out[i] = RowOf(r)
	}
	return out
}

// Evidence returns an agent as of the store's block without its ratings, and the evidence about it without Related and
// Validations. The ratings are packed where the store has the graph of the weights and these scales; unpacked asks for
// single rows instead. ok is false when the store is that of another block or is being changed to one, which may take
// minutes, or when the agent has no ratings there.
//
// It tries the lock and does not wait for it: a caller who cannot have the evidence from memory reads the agent from
// the database instead, which is sooner done than the pass. The block is compared by its hash too, because after a
// reorganization another block has the same number. The evidence has slices of the store's memory, which its reader
// MUST NOT change; a later pass does not change them either (see prepend).
func (s *Store) Evidence(block repute.Block, token repute.TokenID, p *rating.Params, w *flow.Weights,
	scales *rating.Scales, unpacked bool) (subject trustdb.Subject, e trust.Evidence, ok bool) {
	if !s.mu.TryRLock() {
		return subject, e, false
	}
	defer s.mu.RUnlock()
	if s.at.Number != block.Number || s.at.Hash != block.Hash {
		return subject, e, false
	}
	a := s.find(token)
	if a == nil || len(a.ratings) == 0 {
		return subject, e, false
	}
	subject = s.subjectOf(a, s.chain)
	subject.Block = block
	e = EvidenceOf(subject, w, scales)
	// Nil means that the store is of this block, but was moved to it without a graph, or by other parameters.
	by := s.readingsOf(p, w)
	if by != nil && !unpacked && by.packing.IsJudgedBy(scales) {
		e.Packed, e.Packing = a.ratings, by.packing
		return subject, e, true
	}
	if by != nil {
		e.Nodes = by.packing.Nodes
	}
	e.Rows = make([]rating.Row, len(a.ratings))
	for i := range a.ratings {
		s.numbers.row(&a.ratings[i], &e.Rows[i])
		if by != nil {
			e.Rows[i].Said = by.said(a.ratings[i].Kind)
		}
	}
	return subject, e, true
}

// unix is a time in seconds since 1970, 0 for the zero time. Time.Unix of the zero time would be a large negative
// number, which later code would take for a date.
func unix(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

// RowOf converts a stored rating. A tag that was too long to be read does not become the empty one, which has a meaning
// of its own, but one that is in no table. A payment is converted to dollars.
func RowOf(r trustdb.Row) rating.Row {
	if r.Other {
		r.Tag1 = rating.UnreadTag
	}
	row := rating.Row{Block: r.Block, LogIndex: r.LogIndex, Time: unix(r.Time), Rater: r.Rater, Via: r.Via,
		Index:      r.Index,
		Validation: r.Validation,
		Amount:     r.Amount, Tag1: r.Tag1, Tag2: r.Tag2, Content: r.Content}
	if r.Payment != nil {
		row.Paid, row.Payee, row.PaidAt = rating.Dollars(r.Payment.Paid), r.Payment.To, unix(r.Payment.Time)
	}
	return row
}

// tenuresOf converts owners and wallets into tenures. Ratings from the block of a transfer
// belong to the former owner: the new one cannot have used the agent yet. Holders MUST be in the order of their blocks,
// one for each change of the owner or the wallet; the first one has the agent from its own block on. The last tenure
// does not end, and its Ended is 0.
func tenuresOf(holders []trustdb.Holder) (out []rating.Tenure) {
	for i, h := range holders {
		t := rating.Tenure{From: h.From + 1, To: math.MaxUint64, Began: unix(h.Time), Owner: h.Owner, Wallet: h.Wallet}
		if i == 0 {
			t.From = h.From
		}
		if i+1 < len(holders) {
			t.To, t.Ended = holders[i+1].From, unix(holders[i+1].Time)
		}
		out = append(out, t)
	}
	return out
}
