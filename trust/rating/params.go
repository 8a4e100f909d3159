package rating

import (
	"crypto/sha256"
	_ "embed"
	"fmt"
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute/trust/fixed"
	"repute/trust/flow"
)

//go:embed params.json
var defaultParams []byte

//go:embed tags.json
var defaultTags []byte

// Params has everything a score depends on besides evidence and roots. It is read from
// two files, params.json and tags.json; Hash and TagsHash name their exact bytes.
type Params struct {
	Version  string         `json:"version"`
	Walk     flow.Params    `json:"walk"`
	Evidence EvidenceParams `json:"evidence"`
	Negative NegativeParams `json:"negative"`
	Prior    PriorParams    `json:"prior"`
	Paths    PathParams     `json:"paths"`
	Rated    RatedParams    `json:"rated"`
	Guard    GuardParams    `json:"guard"`
	Gates    []Gate         `json:"gates"`
	Tiers    []Tier         `json:"tiers"` // best first
	Epoch    EpochParams    `json:"epoch"`

	countedFor, countedAgainst int // see CountedPaths

	rules    []rule // what records may be: one per rule of the table of tags, then one per finality
	powers   *fixed.Powers
	finality []string // tags of answers, of rules after those of Tags

	Tags     TagTable    `json:"-"`
	Hash     common.Hash `json:"-"` // sha256 of params.json
	TagsHash common.Hash `json:"-"` // sha256 of tags.json
}

// EvidenceParams govern what one rater's opinion weighs.
type EvidenceParams struct {
	Pool         fixed.Fixed `json:"pool"`         // what all unvouched weight of an agent may add up to
	Base         fixed.Fixed `json:"base"`         // weight of the prior
	BaseVariance fixed.Fixed `json:"baseVariance"` // of the prior
	HalfLifeDays int         `json:"halfLifeDays"` // after which an opinion weighs half
	MaxPayment   fixed.Fixed `json:"maxPayment"`   // most that a verified payment multiplies by
	FullPayment  int         `json:"fullPayment"`  // US dollars that reach MaxPayment
}

// NegativeParams weigh bad ratings: vouched evidence against an agent is multiplied by the factor for the
// whole units of independent trust behind it: Factors[0] for one or less, the last for as many
// as there are factors or more. One opinion alone should not cost an agent much; several
// that are independent should cost it more than as much praise brings. A factor below 1 shrinks further, in
// proportion, for agents of which EvidenceParams.Base and all vouched evidence together are below Full:
// otherwise few opinions would undo those who are not well known yet.
type NegativeParams struct {
	Factors []fixed.Fixed `json:"factors"`
	Full    fixed.Fixed   `json:"full"` // units of evidence
}

// Factor returns the factor for evidence with so many whole units behind it, against an agent with this much base and
// evidence.
func (n NegativeParams) Factor(paths int, known fixed.Fixed) fixed.Fixed {
	factor := n.Factors[min(max(paths, 1), len(n.Factors))-1]
	if factor < fixed.One && known < n.Full {
		return factor.Mul(known.Div(n.Full))
	}
	return factor
}

// PriorParams are for agents that others vouch for: an agent starts above zero by what reaches its own identity.
type PriorParams struct {
	Most    fixed.Fixed `json:"most"`
	Decades int         `json:"decades"`
}

// PathParams bound the independent trust behind a side.
type PathParams struct {
	Most      int         `json:"most"`      // more is not measured
	MinWeight fixed.Fixed `json:"minWeight"` // raters of no more than this add nothing to it
}

// RatedParams are the conditions for the statuses rated and thin. An agent is rated when all of the first three are
// met.
type RatedParams struct {
	Confidence fixed.Fixed `json:"confidence"` // least confidence, 0 to 1
	Raters     int         `json:"raters"`     // least number of independent raters
	Each       fixed.Fixed `json:"each"`       // least evidence of each of them, in units
	Thin       fixed.Fixed `json:"thin"`       // units of vouched and sourced evidence from which on an agent is thin
}

// GuardParams are the parameters of penalties. An agent is surely bad when its upper bound is below Below points. It
// limits score and tier of the other agents of an identity that is accountable for it to its own: entirely when at
// least FullShare of the known agents of the identity are surely bad, in proportion when fewer are. A former owner is
// accountable for ratings up to TailDays after its tenure.
type GuardParams struct {
	Below fixed.Fixed `json:"below"`
	// Known is the weight of all its raters together from which on an agent is known.
	Known     fixed.Fixed `json:"known"`
	FullShare fixed.Fixed `json:"fullShare"`
	TailDays  int         `json:"tailDays"`
}

// EpochParams give the length of an epoch in blocks.
type EpochParams struct {
	Blocks uint64            `json:"blocks"`
	Chains map[uint64]uint64 `json:"chains"` // by chain id, instead of Blocks
}

// Of gives a chain's epoch length in blocks.
func (e EpochParams) Of(chainID uint64) uint64 {
	if n := e.Chains[chainID]; n > 0 {
		return n
	}
	return e.Blocks
}

// DefaultParams are those of the files in this package.
func DefaultParams() (*Params, error) { return ParseParams(defaultParams, defaultTags) }

// ReadParams is ParseParams, where a file that is nil is the one of this package.
func ReadParams(params, tags []byte) (*Params, error) {
	if params == nil {
		params = defaultParams
	}
	if tags == nil {
		tags = defaultTags
	}
	return ParseParams(params, tags)
}

// ParseParams reads the two files. The error is repute.ErrInvalid and names what is
// wrong in which of them.
func ParseParams(params, tags []byte) (*Params, error) {
	p := &Params{Hash: sha256.Sum256(params), TagsHash: sha256.Sum256(tags)}
	at, err := strict("params", params, p)
	if err != nil {
		return nil, err
	}
	if _, err := strict("tags", tags, &p.Tags); err != nil {
		return nil, err
	}
	if err := p.check(at); err != nil {
		return nil, err
	}
	p.countedFor, p.countedAgainst = 0, len(p.Negative.Factors)
	for _, g := range p.Gates {
		if g.High != nil {
			p.countedAgainst = max(p.countedAgainst, g.Paths)
		} else {
			p.countedFor = max(p.countedFor, g.Paths)
		}
	}
	for _, t := range p.Tiers {
		p.countedFor = max(p.countedFor, t.Paths)
	}
	if err := p.Tags.check(); err != nil {
		return nil, err
	}
	p.number()
	return p, nil
}

// WithWriters returns the parameters with rules of writers in addition to those of the table. The hashes stay those of
// the two files. The error is repute.ErrInvalid and names the rule.
func (p *Params) WithWriters(writers []WriterRules) (*Params, error) {
	if len(writers) == 0 {
		return p, nil
	}
	out := *p
	out.Tags.Writers = append(slices.Clone(p.Tags.Writers), writers...)
	if err := out.Tags.check(); err != nil {
		return nil, err
	}
	out.number()
	return &out, nil
}

// rule is what a record says of what.
type rule struct {
	channel uint8 // of Tags.Channels
	weight  fixed.Fixed
}

// number makes the rules that records name, and the table of decay.
func (p *Params) number() {
	p.powers = fixed.NewPowers()
	channel := func(name string) uint8 {
		return uint8(slices.IndexFunc(p.Tags.Channels, func(c Channel) bool { return c.Name == name }))
	}
	p.rules = nil
	for _, t := range p.Tags.rules {
		p.rules = append(p.rules, rule{channel(t.Channel), t.Weight})
	}
	v := &p.Tags.Validation
	p.finality = slices.Sorted(maps.Keys(v.Finality))
	for _, tag := range append(slices.Clone(p.finality), "") { // the last is for tags that are not listed
		p.rules = append(p.rules, rule{channel(v.Channel), v.Weight.Mul(v.Finality[tag])})
	}
}

// CountedPaths returns how many independent paths for and against an agent make a difference to a gate, a tier or the
// factor of blame: more need not be measured.
func (p *Params) CountedPaths() (praise, blame int) { return p.countedFor, p.countedAgainst }

// ChannelOf returns the index in Tags.Channels of what a record is about.
func (p *Params) ChannelOf(e *Record) uint8 { return p.rules[e.Rule].channel }

// TagRule returns the rule of the tag of a record, nil for the answer of a validation contract.
func (p *Params) TagRule(e *Record) *TagRule {
	if int(e.Rule) < len(p.Tags.rules) {
		return p.Tags.rules[e.Rule]
	}
	return nil
}

// validation is the rule of an answer with a tag.
func (p *Params) validation(tag string) uint8 {
	at, known := slices.BinarySearch(p.finality, tag)
	if !known {
		at = len(p.finality)
	}
	return uint8(len(p.Tags.rules) + at)
}

// check refuses what cannot be meant, by its place in the file.
func (p *Params) check(at places) error {
	for _, c := range []struct {
		field string
		ok    bool
		hint  string
	}{
		{"version", p.Version != "", "name the version"},
		{"walk.restart", p.Walk.Restart > 0 && p.Walk.Restart < fixed.One, "between 0 and 1"},
		{"walk.iterations", p.Walk.Iterations > 0 && p.Walk.Iterations <= 1000, "1 to 1000"},
		{"walk.fullShare", p.Walk.FullShare > 0 && p.Walk.FullShare <= fixed.One, "above 0, at most 1"},
		{"walk.maxRootShare", p.Walk.MaxRootShare > 0 && p.Walk.MaxRootShare <= fixed.One, "above 0, at most 1"},
		{"walk.rootGives", p.Walk.RootGives >= 0 && p.Walk.RootGives <= fixed.Int(1000), "0 to 1000"},
		{"walk.passOn", p.Walk.PassOn >= 0 && p.Walk.PassOn < fixed.One, "0 to below 1"},
		{"walk.rootVouch", p.Walk.RootVouch >= 0 && p.Walk.RootVouch <= fixed.One, "0 to 1"},
		{"walk.vouch", p.Walk.Vouch >= 0 && p.Walk.Vouch <= fixed.One, "0 to 1"},
		{"walk.fullOpinion", p.Walk.FullOpinion > 0 && p.Walk.FullOpinion <= fixed.One, "above 0, at most 1"},
		{"evidence.pool", p.Evidence.Pool >= 0 && p.Evidence.Pool <= fixed.Int(10), "0 to 10"},
		{"evidence.base", p.Evidence.Base > 0 && p.Evidence.Base <= fixed.Int(1000), "above 0, at most 1000"},
		{"evidence.baseVariance", p.Evidence.BaseVariance >= 0 && p.Evidence.BaseVariance <= fixed.One, "0 to 1"},
		{"evidence.halfLifeDays", p.Evidence.HalfLifeDays > 0 && p.Evidence.HalfLifeDays <= maxDays, "1 to 36500"},
		{"evidence.maxPayment", p.Evidence.MaxPayment >= fixed.One && p.Evidence.MaxPayment <= fixed.Int(10),
			"1 to 10"},
		{"evidence.fullPayment", p.Evidence.FullPayment > 0, "above 0"},
		{"negative.factors", len(p.Negative.Factors) > 0 && slices.IsSorted(p.Negative.Factors) &&
			p.Negative.Factors[0] > 0, "one or more above 0, ascending"},
		{"negative.full", p.Negative.Full > 0 && p.Negative.Full <= fixed.Int(1000), "above 0, at most 1000"},
		{"prior.most", p.Prior.Most >= 0 && p.Prior.Most < fixed.One, "0 to below 1"},
		{"prior.decades", p.Prior.Decades > 0 && p.Prior.Decades <= 18, "1 to 18"},
		{"paths.most", p.Paths.Most > 0 && p.Paths.Most <= 1000, "1 to 1000"},
		{"paths.minWeight", p.Paths.MinWeight >= 0 && p.Paths.MinWeight <= fixed.One, "0 to 1"},
		{"rated.confidence", p.Rated.Confidence > 0 && p.Rated.Confidence < fixed.One, "between 0 and 1"},
		{"rated.raters", p.Rated.Raters > 0 && p.Rated.Raters <= 100, "1 to 100"},
		{"rated.each", p.Rated.Each > 0 && p.Rated.Each <= fixed.One, "above 0, at most 1"},
		{"rated.thin", p.Rated.Thin > 0 && p.Rated.Thin <= fixed.Int(1000), "above 0, at most 1000"},
		{"guard.below", p.Guard.Below >= -fixed.Int(100) && p.Guard.Below <= 0, "-100 to 0 points"},
		{"guard.known", p.Guard.Known > 0 && p.Guard.Known <= fixed.Int(1000), "above 0, at most 1000"},
		{"guard.fullShare", p.Guard.FullShare >= 0 && p.Guard.FullShare <= fixed.One, "0 to 1; 0 for no guard"},
		{"guard.tailDays", p.Guard.TailDays >= 0 && p.Guard.TailDays <= maxDays, "0 to 36500"},
		{"gates", len(p.Gates) > 0, "one gate or more"},
		{"tiers", len(p.Tiers) > 0, "one tier or more, the best first"},
		{"epoch.blocks", p.Epoch.Blocks > 0, "above 0"},
	} {
		if err := at.check(c.field, c.ok, c.hint); err != nil {
			return err
		}
	}
	for id, blocks := range p.Epoch.Chains {
		if err := at.check(fmt.Sprintf("epoch.chains.%d", id), blocks > 0, "above 0"); err != nil {
			return err
		}
	}
	return p.checkRules(at)
}
