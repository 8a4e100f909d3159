package source

import (
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

// Settle returns the credentials that hold after a reading. previous are those that held after the one before, of any
// sources. A source that is off keeps none. A rater that was not answered for keeps its last verified one for as long
// as the source allows. Where the source does not tell when a credential was issued, the first reading that found it
// decides, and a credential that was lost in between begins anew.
func (p *Policy) Settle(previous []Credential, r *Reading) []Credential {
	s := p.Source(r.Source)
	if s == nil || r.Status == StatusOff {
		return nil
	}
	before := map[common.Address]*Credential{}
	for i := range previous {
		if c := &previous[i]; c.Source == s.ID && c.Version == s.Version && c.Chain == r.Chain && c.Read <= r.Time {
			before[c.Rater] = c
		}
	}
	out := make([]Credential, 0, len(r.Credentials))
	for _, c := range r.Credentials {
		if old := before[c.Rater]; old != nil {
			s.carry(&c, old)
		}
		out = append(out, c)
	}
	for _, a := range r.Unknown {
		if old := before[a]; old != nil && r.Time-old.Read <= uint64(s.KeepDays)*day {
			out = append(out, *old)
		}
	}
	Sort(out)
	return out
}

// carry takes over from an older credential of the same rater what a reading cannot tell.
func (s *Source) carry(c, old *Credential) {
	if s.Read.KeepFirst {
		c.Subject = old.Subject
	}
	if s.plan.issued < 0 && c.Subject == old.Subject {
		c.Issued = old.Issued
	}
}
