package source

import (
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Status says whether a source could be read.
type Status string

// States of sources.
const (
	StatusOK Status = "ok" // every rater was answered for
	// StatusOff: the source is not what was declared, so that nothing it says counts.
	StatusOff Status = "off"
	// StatusIncomplete: some raters were not answered for.
	StatusIncomplete Status = "incomplete"
)

// State is how the reading of one source went, and the block that it is about.
type State struct {
	Source string      `json:"source"`
	Chain  uint64      `json:"chain"`
	Status Status      `json:"status"`
	Reason string      `json:"reason,omitempty"` // "" for StatusOK
	Block  uint64      `json:"block"`
	Hash   common.Hash `json:"hash"`
	Time   uint64      `json:"time"` // of the block, in seconds of the Unix era
	// Complete is the time of the block of the newest reading that was StatusOK, 0 where none was. The caller of Settle
	// sets it, and Kept.
	Complete uint64 `json:"complete,omitempty"`
	// Kept is how many credentials of an earlier reading still count because this one is incomplete.
	Kept int `json:"kept,omitempty"`
	// Implementations are those that the source's contracts delegated to, by their names; the zero address for none.
	Implementations map[string]common.Address `json:"implementations,omitempty"`
}

// Reading is what one source said of the raters that it was asked about.
type Reading struct {
	State
	Credentials []Credential
	Unknown     []common.Address // raters that were not answered for
}

// Past is what the readings of a chain's sources had found before.
type Past struct {
	States      []State
	Credentials []Credential
}

// Settle returns the credentials that hold after a reading. previous are those that held after the one before, of any
// sources. A rater that was not answered for keeps its last verified one for as long as the source allows. After that,
// and while a source is off, none of its credentials has weight; where the source does not tell when they were issued
// they are carried along without weight, so that a failure does not make them mature anew. Where the source does not
// tell, the first reading that found a credential decides, and one that a reading denied in between begins anew.
func (p *Policy) Settle(previous []Credential, r *Reading) []Credential {
	s := p.Source(r.Source)
	if s == nil {
		return nil
	}
	before := map[common.Address]*Credential{}
	for i := range previous {
		if c := &previous[i]; c.Source == s.ID && c.Version == s.Version && c.Chain == r.Chain && c.Read <= r.Time {
			before[c.Rater] = c
		}
	}
	unknown := r.Unknown
	out := make([]Credential, 0, len(r.Credentials))
	if r.Status == StatusOff {
		unknown = slices.Collect(maps.Keys(before))
	} else {
		for _, c := range r.Credentials {
			if old := before[c.Rater]; old != nil {
				s.carry(&c, old)
			}
			out = append(out, c)
		}
	}
	for _, a := range unknown {
		if old := before[a]; old != nil {
			out = s.keep(out, *old, r)
		}
	}
	Sort(out)
	return out
}

// keep appends a credential that a reading did not confirm, as long as it is to be kept.
func (s *Source) keep(out []Credential, c Credential, r *Reading) []Credential {
	kept := func(days int) bool { return r.Time-c.Read <= uint64(days)*day }
	switch {
	case r.Status != StatusOff && c.Lapsed == 0 && kept(s.KeepDays):
		return append(out, c)
	case kept(s.CarryDays) && s.CarryDays > 0:
		if c.Lapsed == 0 {
			c.Lapsed = r.Time
		}
		return append(out, c)
	}
	return out
}

// carry takes over from an older credential of the same rater what a reading cannot tell. What logs tell needs none of
// it.
func (s *Source) carry(c, old *Credential) {
	if s.Read.EAS != nil {
		s.renew(c, old)
		return
	}
	if s.Dated() {
		return
	}
	if s.Read.KeepFirst {
		c.Subject = old.Subject
	}
	if c.Subject == old.Subject {
		c.Issued = old.Issued
	}
}

// renew joins an attestation with the one before it of the same rater, so that a renewal does not mature anew: it counts
// since the first issue, and the last one extends its age alone. The earlier one MUST have been valid at the issue of
// the later one as far as its last reading tells, and of the same attester, which is certain where the source has one.
func (s *Source) renew(c, old *Credential) {
	again := max(old.Issued, old.Renewed) // the issue of the attestation that old was read from
	valid := (old.Revoked == 0 || old.Revoked > c.Issued) && (old.Expires == 0 || old.Expires > c.Issued)
	switch {
	case c.Subject == old.Subject && c.Issued == again:
		c.Issued, c.Renewed = old.Issued, old.Renewed
	case c.Subject != old.Subject && c.Issued > again && valid && old.Lapsed == 0 && len(s.Read.EAS.Attester) == 1:
		c.Issued, c.Renewed = old.Issued, c.Issued
	}
}
