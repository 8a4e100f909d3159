package source

import (
	"github.com/ethereum/go-ethereum/common"
)

// Moment is the time of a log. When Block is above 0, Time is unknown until the caller has looked up the block's time.
// When Block is 0, Time is known, in Unix seconds. Times of blocks are looked up for the few logs that count instead of
// for all.
type Moment struct {
	Block, Time uint64
}

// Tenure is the time during which a rater has had one credential, according to logs.
type Tenure struct {
	Subject common.Hash
	Issued  Moment
	Renewed Moment // the last time that it was issued again; zero: never

	place int // position of the issue among all signs, from 1; 0 for a credential known before
}

// Telling is the result of Source.Tenure. The zero value is Tells.
type Telling int

// Results of Source.Tenure.
const (
	Tells     Telling = iota // the logs show a credential: Tenure is set
	TellsNone                // the logs show that the rater has no credential
	TellsLess                // the caller must call again with known nil and all logs of the rater
)

// Tenure finds the credential of a rater in logs, with its time of issue. signs are the rater's logs in the order of
// the chain: those after the block of the known credential, or all of them when known is nil. person is the result of
// Inquiry.Person, zero when no calls were made.
//
// When a rater has several credentials at once, the latest attestation counts for EAS. For other sources the credential
// of person counts where calls return a person and KeepFirst is not set, else the one that the rater has had for
// longest.
//
// The third result exists because logs are read from where the last reading ended. As long as the known credential
// lives, older ones do not matter; when it ends, an older one may take its place, and only all logs of the rater can
// tell.
func (s *Source) Tenure(known *Credential, person common.Hash, signs []Sign) (Tenure, Telling) {
	held := map[common.Hash]*Tenure{}
	lost := false // the known credential was revoked, whether or not it was issued again
	if known != nil {
		held[known.Subject] = &Tenure{Subject: known.Subject, Issued: Moment{Time: known.Issued},
			Renewed: Moment{Time: known.Renewed}}
	}
	for i, sign := range signs {
		at := Moment{Block: sign.Block}
		switch t := held[sign.Key]; {
		case sign.Revoked:
			delete(held, sign.Key)
			lost = lost || known != nil && sign.Key == known.Subject
		case t != nil:
			t.Renewed = at
		default:
			held[sign.Key] = &Tenure{Subject: sign.Key, Issued: at, place: i + 1}
		}
	}
	// When the known credential was revoked, or another one counts, the rater may have an older one. Only the earlier
	// logs show it.
	var best *Tenure
	switch {
	case s.Read.EAS == nil && s.Read.Person != "" && !s.Read.KeepFirst && len(s.plan.steps) > 0:
		best, lost = held[person], known != nil && known.Subject != person
	default:
		lost = lost && s.Read.EAS == nil
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

// prefers reports whether t counts rather than than. Two tenures never have the same place.
func (s *Source) prefers(t, than *Tenure) bool {
	if s.Read.EAS != nil {
		return t.place > than.place
	}
	return t.place < than.place
}

// Date sets the person and the times of a credential to those of a tenure. Its moments MUST have their times. Expires
// and Revoked stay as the calls returned them.
func (c *Credential) Date(t Tenure) {
	c.Subject, c.Issued, c.Renewed = t.Subject, t.Issued.Time, t.Renewed.Time
}
