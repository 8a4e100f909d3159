package answers

import (
	"context"
	"math"
	"strconv"
	"strings"

	"repute"
	"repute/api/wire"
	"repute/store/query"
	"repute/store/searchdb"
	"repute/trust"
	"repute/trust/explain"
)

// Scored returns the stored score, or the score by the caller's roots when by has any. A score by own roots is
// computed, and cached by package explain; only a set of roots that is not cached counts against the limit.
func (x *Index) Scored(ctx context.Context, id repute.AgentID, stored repute.Score, by OwnRoots) (wire.Scored, error) {
	if by.Roots == "" {
		return wire.EncodeScored(stored)
	}
	set, name, err := by.read(ctx, x.trust, id.ChainID)
	if err != nil {
		return wire.Scored{}, err
	}
	p, err := x.trust.Personal(ctx, id, set, func() error { return x.admitWalk(ctx) })
	if err != nil {
		return wire.Scored{}, err
	}
	return wire.EncodePersonal(p, name)
}

// EncodeReputation writes a reputation with its score, without statement and checks.
func (x *Index) EncodeReputation(r query.Reputation, scored wire.Scored) wire.ReputationAnswer {
	return wire.ReputationAnswer{
		Agent: wire.ID(r.Agent.String()), Scored: scored, Independence: wire.EncodeIndependence(r.Independence),
		Summary: wire.EncodeSummary(r.Summary), Tags: wire.Each(r.Tags, x.TagSummary), TagsTotal: wire.Long(r.Total),
		Counts: wire.EncodeCounts(r.Counts), AsOf: wire.EncodeAsOf(r.AsOf),
	}
}

// OwnRoots has the parameters roots and sources, by which a caller replaces the chain's own roots. An empty list of
// roots MUST be refused by NoRoots before, where a protocol can tell it from none.
type OwnRoots struct {
	// Roots are addresses divided by commas, or the name of a set of roots of the chain; "" for the chain's own roots.
	Roots string
	// Sources is "default" when the chain's sources count in addition to these roots, and "none" or "" otherwise.
	Sources string
}

// Values of the parameter sources.
const (
	sourcesNone    = "none"
	sourcesDefault = "default"
)

// read returns the roots. name is the name of their set, or "given" for a list of addresses. What begins like an
// address, or has a comma or a space, is a list; names of sets have neither.
func (o OwnRoots) read(ctx context.Context, r *explain.Reader,
	chainID uint64) (by explain.Own, name string, err error) {
	by.Sources = o.Sources == sourcesDefault
	if strings.HasPrefix(o.Roots, "0x") || strings.HasPrefix(o.Roots, "0X") || strings.ContainsAny(o.Roots, ", ") {
		by.Roots, err = explain.PersonalRoots(o.Roots)
		return by, "given", err
	}
	by.Roots, err = r.NamedRoots(ctx, chainID, o.Roots)
	return by, o.Roots, err
}

// Check refuses own roots with signed or with another view than latest, and sources without own roots.
func (o OwnRoots) Check(sign bool, at repute.At) error {
	switch {
	case o.Sources != "" && o.Sources != sourcesNone && o.Sources != sourcesDefault:
		return repute.Invalid("sources", "unknown value", "default or none")
	case o.Sources != "" && o.Roots == "":
		return repute.Invalid("sources", "is given without roots",
			"leave sources out: by the chain's own roots its sources count as its operator decided")
	case o.Roots == "":
		return nil
	case sign:
		return repute.Invalid("signed", "scores by the caller's roots are not signed", "leave out signed, or roots")
	case at != Latest():
		return repute.Invalid("at", "the caller's roots score at latest only", "leave out at, or roots")
	}
	return nil
}

// NoRoots returns the error for an empty parameter roots. A caller that meant to give roots MUST NOT get a score by
// those of the chain.
func NoRoots() error {
	return repute.Invalid("roots", "is empty",
		"addresses divided by commas or the name of a set; leave roots out for the chain's own")
}

// parseScore reads a score in points; nil for "". NaN fails the comparison. The result is in thousandths, as scores are
// stored.
func parseScore(field, s string) (*repute.Points, error) {
	if s == "" {
		return nil, nil
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= -100 && n <= 100) {
		return nil, repute.Invalid(field, "not a score", "a number from -100 to 100")
	}
	return new(repute.Points(math.Round(n * 1000))), nil
}

// parseScoreFilter reads the filters of a list that are about scores. It does not refuse a lowest score above the
// highest one: such a list is empty.
func parseScoreFilter(least, most, tier, status string) (f searchdb.ScoreFilter, err error) {
	if f.MinScore, err = parseScore("minScore", least); err != nil {
		return f, err
	}
	if f.MaxScore, err = parseScore("maxScore", most); err != nil {
		return f, err
	}
	if tier != "" {
		n, err := strconv.Atoi(tier)
		if err != nil || n < 0 || n > 4 || tier[0] == '+' {
			return f, repute.Invalid("tier", "not a tier", "a number from 0 to 4")
		}
		f.Tier = &n
	}
	switch status {
	case "":
	case string(trust.Rated), string(trust.Thin), string(trust.Unrated):
		f.Status = repute.Status(status)
	default:
		return f, repute.Invalid("rating", "unknown status", "rated, thin or unrated")
	}
	return f, nil
}
