package rating

import (
	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/flow"
)

// PackedRow is a rating whose parts are numbers, for evidence that is in memory for all agents of a chain at once. The
// rating has no payment.
type PackedRow struct {
	Writer uint32 // index of the rater in Packing.Raters
	Kind   uint32 // index in Packing.Kinds
	Block  uint32
	Log    uint32
	Time   uint32 // of the block in Unix seconds, 0 when unknown
	// Content is equal for ratings with the same feedback URI.
	Content uint32
}

// PackedKind is what ratings of one kind say, and through which gateway.
type PackedKind struct {
	Said *Said  // nil when it depends on the rater
	Via  uint32 // 1 more than the gateway's index in Packing.Raters, 0 for none
	// Text is equal for kinds with equal values and tags, whatever their gateway.
	Text uint32
}

// Packing has what the numbers in packed rows stand for. It does not change once Judge was called, and is then safe for
// concurrent use.
type Packing struct {
	Raters []common.Address
	Kinds  []PackedKind // nil when there are so many that each rating is read by itself
	Nodes  []flow.Node  // of raters in the graph of the weights; nil until there is one
	// Expand sets a row to what a packed row stands for. It is called concurrently.
	Expand func(*PackedRow, *Row)
	scales *Scales
	judged []judgedKind
	// isPartial says that the meaning of some kinds is unknown.
	isPartial bool
}

// judgedKind is the opinion of a kind.
type judgedKind struct {
	value  int32 // as in record
	rule   uint8
	reason Reason // why the rating does not count
	// perRater says that the opinion follows from the scale of the rater, and unknown that all else follows from the
	// rater too.
	perRater, unknown bool
}

// Judge finds the opinions of all kinds by scales, which may be nil.
func (k *Packing) Judge(p *Params, scales *Scales) {
	k.scales, k.judged = scales, make([]judgedKind, len(k.Kinds))
	for i := range k.Kinds {
		said, out := k.Kinds[i].Said, &k.judged[i]
		if said == nil {
			out.unknown, k.isPartial = true, true
			continue
		}
		if out.reason = said.reason; out.reason != "" {
			continue
		}
		e := Record{Rule: said.rule}
		if int(said.rule) < len(p.Tags.rules) && scales != nil {
			rule := p.Tags.rules[said.rule]
			out.perRater = rule.HasOtherScale(said.value) || len(rule.Scales) > 0 && len(scales.stated) > 0
		}
		if !out.perRater {
			out.reason = p.Judge(&e, Writing{}, said.value, nil)
		}
		out.value, out.rule = e.Value, said.rule
	}
}

// IsJudgedBy reports whether evidence may have packed rows: Judge was called with these scales, and no meaning depends
// on the rater alone.
func (k *Packing) IsJudgedBy(scales *Scales) bool {
	return len(k.judged) > 0 && !k.isPartial && k.scales == scales
}

// Read is Params.Read for a packed row.
func (k *Packing) Read(p *Params, row *PackedRow, at int64) (e Record, reason Reason) {
	if len(k.judged) == 0 || k.judged[row.Kind].unknown {
		var r Row
		k.Expand(row, &r)
		return p.Read(&r, at, k.scales)
	}
	kind := &k.judged[row.Kind]
	switch {
	case row.Time == 0:
		return e, ReasonUndated
	case int64(row.Time) > at:
		return e, ReasonFuture
	case k.Kinds[row.Kind].Via == row.Writer+1:
		return e, ReasonGateway // the vote of one address would stand for all who paid
	case kind.reason != "":
		return e, kind.reason
	}
	e = Record{Value: kind.value, Time: row.Time, Payment: uint16(fixed.One >> 20), Rule: kind.rule}
	if kind.perRater {
		said := k.Kinds[row.Kind].Said
		reason = p.Judge(&e, Writing{k.Raters[row.Writer], said.tag}, said.value, k.scales)
	}
	return e, reason
}
