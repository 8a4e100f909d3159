package source

import (
	"maps"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Status is the result of reading a source.
type Status string

// Results of reading a source.
const (
	// StatusOK means that there is an answer about every rater.
	StatusOK Status = "ok"
	// StatusOff means that a contract differs from its declaration. No credential of the source counts.
	StatusOff Status = "off"
	// StatusIncomplete means that there is no answer about some raters.
	StatusIncomplete Status = "incomplete"
)

// State is the result of reading one source at one block. A run stores the states of all its sources as JSON. Block,
// Hash and Time are those of the reading also where it failed.
type State struct {
	Source string      `json:"source"`
	Chain  uint64      `json:"chain"` // on which it was read
	Status Status      `json:"status"`
	Reason string      `json:"reason,omitempty"` // "" for StatusOK
	Block  uint64      `json:"block"`            // at which it was read
	Hash   common.Hash `json:"hash"`             // of the block
	Time   uint64      `json:"time"`             // of the block, Unix seconds
	// Complete is the time of the block of the newest reading with StatusOK, 0 when there was none. The trust engine
	// sets Complete and Kept after Settle.
	Complete uint64 `json:"complete,omitempty"`
	// Kept is how many credentials of earlier readings still count because this reading is incomplete.
	Kept int `json:"kept,omitempty"`
	// Implementations are the addresses that the source's contracts delegate to, by the contracts' names. The zero
	// address stands for a contract that is no proxy.
	Implementations map[string]common.Address `json:"implementations,omitempty"`
}

// StateOf returns the state of one source, nil when there is none.
func StateOf(states []State, id string) *State {
	at := slices.IndexFunc(states, func(s State) bool { return s.Source == id })
	if at < 0 {
		return nil
	}
	return &states[at]
}

// Reading is the result of reading one source about a list of raters. A rater that is in neither list was answered
// about and has no credential. With StatusOff both lists are empty and mean nothing.
type Reading struct {
	State
	Credentials []Credential
	Unknown     []common.Address // raters without an answer
}

// Past is the result of the readings of a chain's sources for the epoch before.
type Past struct {
	States      []State
	Credentials []Credential // of all sources, after Settle
}

// Settle returns the credentials of the source of r after the reading r. previous are the credentials of all sources
// after the reading before.
//
//   - A rater without an answer keeps its last verified credential for KeepDays.
//   - After KeepDays, and while the source is off, the credential has no weight. For a source that is not Dated it
//     stays in the list for CarryDays with Lapsed set, so that a failure does not restart its maturity.
//   - For a source that is not Dated, the time of issue is that of the first reading that found the credential. A
//
// reading that denies the credential ends this: a later reading starts at its own time.
//
// Credentials of another version of the source are dropped: their answers had another meaning. So are those of readings
// after r, which may be left from a chain that was reorganized. Neither previous nor r is changed.
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

// keep appends a credential that the reading r did not confirm, unless KeepDays and CarryDays are over. KeepDays count
// from the last reading that confirmed the credential and not from each failure.
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

// carry copies the time of issue, and with KeepFirst the person, from an older credential of the same rater. It does
// nothing for a source that is Dated, whose readings give both. Where the person changed without KeepFirst, the
// credential is a new one and matures again.
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

// renew joins an attestation with the one before it of the same rater, so that a renewal does not mature anew: it
// counts since the first issue, and the last one extends its age alone. The earlier one MUST have been valid at the
// issue of the later one as far as its last reading tells, and of the same attester, which is certain where the source
// has one.
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
