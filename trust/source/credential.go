package source

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/fixed"
)

// Credential is one fact about one address, as it was read at a block. Times are Unix seconds. Inquiry.Credential makes
// it, Date sets the times that logs give, and Settle sets Lapsed. It is stored as it was read, and is never changed by
// a later version of the policy, which decides at each use whether and how much it counts.
type Credential struct {
	Source  string         `json:"source"`  // id of the source
	Version int            `json:"version"` // of the source's declaration, when the credential was read
	Class   Class          `json:"class"`
	Rater   common.Address `json:"rater"`
	// Subject is equal for credentials of one source that belong to one person. For a source that names no person it is
	// the rater's address, or zero where logs date the credential.
	Subject common.Hash `json:"subject"`
	Weight  fixed.Fixed `json:"weight"` // of the source when it was read; Raters uses the policy's instead
	// Issued is the time of issue, or the time of the first reading that found the credential where the source is not
	// Dated.
	Issued  uint64      `json:"issued"`
	Renewed uint64      `json:"renewed,omitempty"` // the last time that it was issued again; 0: never
	Expires uint64      `json:"expires,omitempty"` // 0: never
	Revoked uint64      `json:"revoked,omitempty"` // 0: it is not revoked
	Chain   uint64      `json:"chain"`             // on which it was read
	Block   uint64      `json:"block"`             // at which it was read
	Hash    common.Hash `json:"hash"`              // of Block
	Read    uint64      `json:"read"`              // time of Block
	Answer  common.Hash `json:"answer"`            // sha256 of all answers of the contracts
	// Lapsed is the time of the reading since which the credential has no weight: the source was off, or no reading had
	// confirmed the credential for KeepDays. 0: it has not lapsed.
	Lapsed uint64 `json:"lapsed,omitempty"`
}

// Why is the reason for which a credential gives no weight at a time; "" when it gives weight.
type Why string

// Reasons for which a credential gives no weight.
const (
	WhyUnlisted Why = "unlisted" // the policy has no such source, or another version of it
	WhyRelay    Why = "relay"    // the address sends transactions for others
	WhyRevoked  Why = "revoked"
	WhyExpired  Why = "expired"
	WhyMaturing Why = "maturing" // issued too recently
	WhyAged     Why = "aged"     // issued, or last renewed, longer ago than ageDays
	WhyLapsed   Why = "lapsed"   // see Credential.Lapsed
)

// day is the length of a day in seconds.
const day = 24 * 60 * 60

// Counts returns the reason for which a credential gives no weight at a time in Unix seconds, or "" when it gives
// weight. The first reason that holds is returned. A time in the future, of a clock or
// a contract that is wrong, counts as maturing.
func (p *Policy) Counts(c *Credential, at uint64) Why {
	s := p.Source(c.Source)
	if s == nil || s.Version != c.Version {
		return WhyUnlisted
	}
	_, relay := p.Relay(c.Rater)
	switch {
	case relay:
		return WhyRelay
	case c.Revoked != 0 && c.Revoked <= at:
		return WhyRevoked
	case c.Expires != 0 && c.Expires <= at:
		return WhyExpired
	case c.Lapsed != 0:
		return WhyLapsed
	case c.Issued > at || at-c.Issued < uint64(s.MaturityDays)*day:
		return WhyMaturing
	case s.AgeDays > 0 && at-max(c.Issued, min(c.Renewed, at)) > uint64(s.AgeDays)*day:
		return WhyAged
	}
	return ""
}

// Rater is the weight of an address by all its credentials.
type Rater struct {
	Address common.Address
	Weight  fixed.Fixed // at most 1
	Parts   []Part      // one for each source, ordered by its id; their sum may be above 1
}

// Part is the weight of a rater by one source.
type Part struct {
	Source  string
	Class   Class
	Subject common.Hash // with Source: the person
	Weight  fixed.Fixed
}

// Raters returns the weights of all raters at a time in Unix seconds, in ascending order of their addresses. At most
// one credential of each source counts for a rater, within the bound of its class. The weights are those of the policy,
// not those that the credentials were stored with. The result depends neither on the order of credentials nor on the
// machine.
func (p *Policy) Raters(credentials []Credential, at uint64) []Rater {
	counting := make([]*Credential, 0, len(credentials))
	for i := range credentials {
		if p.Counts(&credentials[i], at) == "" {
			counting = append(counting, &credentials[i])
		}
	}
	slices.SortFunc(counting, func(a, b *Credential) int {
		return cmp.Or(a.Rater.Cmp(b.Rater), cmp.Compare(a.Source, b.Source), a.Subject.Cmp(b.Subject))
	})
	var out []Rater
	for i, c := range counting {
		if i == 0 || counting[i-1].Rater != c.Rater {
			out = append(out, Rater{Address: c.Rater})
		}
		out[len(out)-1].add(p, c)
	}
	return out
}

// add adds the weight of a credential. Credentials MUST be added in the order of their sources. Several credentials of
// one source have the same weight, so the first one counts and the others are ignored. With InAll a class gives a rater
// no more than the weight of one credential, whatever the number of its sources; the sources whose ids come first use
// it up.
func (r *Rater) add(p *Policy, c *Credential) {
	if n := len(r.Parts); n > 0 && r.Parts[n-1].Source == c.Source {
		return
	}
	s := p.Source(c.Source)
	rule := p.Classes[s.Class]
	w := min(s.Weight, rule.Weight)
	left := rule.Weight
	for _, part := range r.Parts {
		if rule.InAll && part.Class == s.Class {
			left -= part.Weight
		}
	}
	if w = min(w, left); w <= 0 {
		return
	}
	r.Parts = append(r.Parts, Part{c.Source, s.Class, c.Subject, w})
	r.Weight = min(fixed.One, r.Weight+w)
}

// Sort orders credentials by source, rater, subject, chain and answer, in place.
func Sort(credentials []Credential) {
	slices.SortFunc(credentials, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), a.Rater.Cmp(b.Rater), a.Subject.Cmp(b.Subject),
			cmp.Compare(a.Chain, b.Chain), a.Answer.Cmp(b.Answer))
	})
}

// Encode returns credentials as one JSON object per line, in the order of Sort. The trust engine stores these bytes
// once per run, and the run names their sha256.
func Encode(credentials []Credential) ([]byte, error) {
	sorted := slices.Clone(credentials)
	Sort(sorted)
	var out bytes.Buffer
	for i := range sorted {
		line, err := json.Marshal(&sorted[i])
		if err != nil {
			return nil, fmt.Errorf("encode a credential: %w", err)
		}
		out.Write(append(line, '\n'))
	}
	return append([]byte{}, out.Bytes()...), nil // empty, not nil, without credentials
}

// Decode reads what Encode wrote. The error is repute.ErrInvalid and names the line. Empty lines are skipped, so that
// the text of no credentials is valid. It does not check that the lines are sorted.
func Decode(text []byte) (out []Credential, err error) {
	for n, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var c Credential
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return nil, repute.Invalid(fmt.Sprintf("credentials line %d", n+1), err.Error(),
				"one credential in JSON on each line")
		}
		out = append(out, c)
	}
	return out, nil
}
