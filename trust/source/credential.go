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

// Credential is one fact about one address, as it was read at a block. Times are seconds of the Unix era.
type Credential struct {
	Source  string         `json:"source"` // its id
	Version int            `json:"version"`
	Class   Class          `json:"class"`
	Rater   common.Address `json:"rater"`
	// Subject is equal for credentials of one source that belong to one person, as far as the source tells.
	Subject common.Hash `json:"subject"`
	Weight  fixed.Fixed `json:"weight"`
	Issued  uint64      `json:"issued"`            // or first found, where the source does not tell
	Renewed uint64      `json:"renewed,omitempty"` // the last time that it was issued again; 0: never
	Expires uint64      `json:"expires,omitempty"` // 0: never
	Revoked uint64      `json:"revoked,omitempty"` // 0: it is not
	Chain   uint64      `json:"chain"`             // where it was read
	Block   uint64      `json:"block"`
	Hash    common.Hash `json:"hash"`   // of the block
	Read    uint64      `json:"read"`   // time of the block
	Answer  common.Hash `json:"answer"` // sha256 of all answers of the contracts
	// Lapsed is the time of the first reading since Read that did not confirm it; 0: there was none.
	Lapsed uint64 `json:"lapsed,omitempty"`
}

// Why says why a credential gives no weight at a time; "" when it does.
type Why string

// Reasons without weight.
const (
	WhyUnlisted Why = "unlisted" // the policy has no such source, or another version of it
	WhyRelay    Why = "relay"    // the address sends transactions for others
	WhyRevoked  Why = "revoked"
	WhyExpired  Why = "expired"
	WhyMaturing Why = "maturing" // issued too recently
	WhyAged     Why = "aged"     // issued and renewed too long ago
	WhyLapsed   Why = "lapsed"   // no reading has confirmed it for longer than the source allows
)

// day is in seconds.
const day = 24 * 60 * 60

// Counts returns why a credential gives no weight at a time, "" when it gives its weight.
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

// Rater is the weight that an address has from all its credentials.
type Rater struct {
	Address common.Address
	Weight  fixed.Fixed // at most 1
	Parts   []Part      // one for each source, by its id; they may add up to more than 1
}

// Part is what one source gives a rater.
type Part struct {
	Source  string
	Class   Class
	Subject common.Hash // with Source: the person
	Weight  fixed.Fixed
}

// Raters returns the weights at a time, ascending by address: of each source the best credential that counts, bounded
// by its class. The weights are those of the policy, not those that the credentials were stored with.
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

// add joins a credential, which comes in the order of sources. Of several of one source the first counts: all of them
// weigh the same.
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

// Sort orders credentials by source, rater and subject, in place.
func Sort(credentials []Credential) {
	slices.SortFunc(credentials, func(a, b Credential) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), a.Rater.Cmp(b.Rater), a.Subject.Cmp(b.Subject),
			cmp.Compare(a.Chain, b.Chain), a.Answer.Cmp(b.Answer))
	})
}

// Encode writes credentials as evidence: one JSON object per line, in the order of Sort.
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
	return append([]byte{}, out.Bytes()...), nil // no credential is an empty text
}

// Decode reads what Encode wrote. The error is repute.ErrInvalid and names the line.
func Decode(text []byte) (out []Credential, err error) {
	for n, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var c Credential
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		if err := d.Decode(&c); err != nil {
			return nil, repute.Invalid(fmt.Sprintf("credentials line %d", n+1), err.Error(), "one credential in JSON on each line")
		}
		out = append(out, c)
	}
	return out, nil
}
