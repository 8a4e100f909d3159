package source

import (
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// Unanswered returns the reading of a source that could not be read about any rater. Nobody loses a credential by it
// before KeepDays are over.
func (s *Source) Unanswered(chain uint64, at repute.Block, raters []common.Address, reason string) Reading {
	return Reading{Unknown: raters, State: State{Source: s.ID, Chain: chain, Status: StatusIncomplete, Reason: reason,
		Block: at.Number, Hash: at.Hash, Time: uint64(max(0, at.Time.Unix()))}}
}

// ReadingAmong returns the source's reading among readings of raters, who are in order. fault is the reason for which
// there is no usable one, "" when there is one. A reading that is missing, or that is about another source or other
// raters, MUST NOT count as "no". It checks the reader, which may run in another program: a credential for an address
// that was not asked for would give weight to an address without ratings, and a wrong version would count by a meaning
// that no longer holds.
func (s *Source) ReadingAmong(readings []Reading, raters []common.Address) (r Reading, fault string) {
	found := 0
	for i := range readings {
		if readings[i].Source == s.ID {
			r, found = readings[i], found+1
		}
	}
	if found != 1 {
		return r, fmt.Sprintf("the reader returned %d readings of the source", found)
	}
	for i := range r.Credentials {
		c := &r.Credentials[i]
		_, asked := slices.BinarySearchFunc(raters, c.Rater, common.Address.Cmp)
		if !asked || c.Source != s.ID || c.Version != s.Version {
			return r, fmt.Sprintf("the reader returned a credential of source %q for %s, which was not asked for",
				c.Source, c.Rater)
		}
	}
	return r, ""
}
