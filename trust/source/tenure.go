package source

import (
	"github.com/ethereum/go-ethereum/common"
)

// Moment is when a log was written: a block whose time is to be looked up, or, with block 0, a time that is known.
type Moment struct {
	Block, Time uint64
}

// Tenure is one credential of a rater as logs tell it.
type Tenure struct {
	Subject common.Hash
	Issued  Moment
	Renewed Moment // the last time that it was issued again; zero: never

	place int // of the issue among all signs
}

// Telling is what logs tell of a rater.
type Telling int

// Tellings.
const (
	Tells     Telling = iota // the tenure is found
	TellsNone                // the rater has no credential
	TellsLess                // the logs before the known credential are needed too
)

// Tenure finds since when a rater has its credential. signs are the rater's in the order of the chain: those after the
// block of the known credential, or with a nil one all. person is what calls answered, zero where none was asked.
//
// Where anybody can bind an address again and the first person counts, and where nothing tells credentials apart by
// person, the one that is held for longest counts. Of attestations the latest counts.
func (s *Source) Tenure(known *Credential, person common.Hash, signs []Sign) (Tenure, Telling) {
	held := map[common.Hash]*Tenure{}
	if known != nil {
		held[known.Subject] = &Tenure{Subject: known.Subject, Issued: Moment{Time: known.Issued},
			Renewed: Moment{Time: known.Renewed}}
	}
	for i, sign := range signs {
		at := Moment{Block: sign.Block}
		switch t := held[sign.Key]; {
		case sign.Revoked:
			delete(held, sign.Key)
		case t != nil:
			t.Renewed = at
		default:
			held[sign.Key] = &Tenure{Subject: sign.Key, Issued: at, place: i + 1}
		}
	}
	// Without the known one an older one may be held.
	lost := known != nil && held[known.Subject] == nil && s.Read.EAS == nil
	var best *Tenure
	switch {
	case s.Read.EAS == nil && s.Read.Person != "" && !s.Read.KeepFirst && len(s.plan.steps) > 0:
		best, lost = held[person], false
	default:
		for _, t := range held {
			if best == nil || s.prefers(t, best) {
				best = t
			}
		}
	}
	switch {
	case known != nil && (lost || best == nil):
		return Tenure{}, TellsLess
	case best == nil:
		return Tenure{}, TellsNone
	}
	return *best, Tells
}

// prefers reports whether a tenure counts rather than another one. No two have one place.
func (s *Source) prefers(t, than *Tenure) bool {
	if s.Read.EAS != nil {
		return t.place > than.place
	}
	return t.place < than.place
}

// Date gives a credential the person and the times that logs tell.
func (c *Credential) Date(t Tenure) {
	c.Subject, c.Issued, c.Renewed = t.Subject, t.Issued.Time, t.Renewed.Time
}
