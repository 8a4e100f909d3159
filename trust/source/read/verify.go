package read

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust/source"
)

// Now returns a final block of a chain at which all sources can be read: the newest one, or where a home lags behind it
// the last one that is not after what is final there.
func (r *Reader) Now(ctx context.Context, chain uint64, sources []*source.Source) (repute.Block, error) {
	if !r.Reaches(chain) {
		return repute.Block{}, repute.Invalid("rpc", fmt.Sprintf("no endpoint of chain %d is configured", chain),
			"--chain NAME --rpc URL, or an entry of chains in the configuration")
	}
	final, err := r.lastFinal(ctx, chain)
	if err != nil {
		return final, err
	}
	end := final.Time
	for _, s := range sources {
		if home := s.ReadOn(chain); home != chain && r.Reaches(home) {
			there, err := r.lastFinal(ctx, home)
			if err != nil {
				return there, err
			}
			if !there.Time.After(end) {
				end = there.Time.Add(-time.Second)
			}
		}
	}
	if end.Equal(final.Time) {
		return final, nil
	}
	s := r.open(ctx, chain, repute.Block{Time: end})
	return s.at, s.ready(ctx)
}

// Difference is a stored credential that contracts do not confirm.
type Difference struct {
	Source string         `json:"source"`
	Rater  common.Address `json:"rater"`
	Block  uint64         `json:"block"`
	What   string         `json:"difference"`
}

// Checked is what Verify found.
type Checked struct {
	Credentials int          `json:"credentials"` // that were compared
	Differences []Difference `json:"differences"`
	Unchecked   []string     `json:"unchecked"` // what could not be compared, and why
}

// Verify reads stored credentials of a chain again, each at the block at which it was read, and compares them. at is
// the block of the run that has them, and states are those of its readings. Attestations are compared by their own
// times where the state of the block is not kept any more. A stored credential that is not compared is told in
// Unchecked.
func (r *Reader) Verify(ctx context.Context, chain uint64, at repute.Block, sources []*source.Source,
	past source.Past) (
	out Checked, err error) {
	out.Differences, out.Unchecked = []Difference{}, notVisited(sources, past.Credentials)
	for _, s := range sources {
		for _, group := range byBlock(s, past.Credentials) {
			if err := r.verify(ctx, chain, at, s, past.States, group, &out); err != nil {
				return out, err
			}
		}
	}
	return out, nil
}

// byBlock are the credentials of a source that readings confirmed, by the block of the reading.
func byBlock(s *source.Source, held []source.Credential) [][]source.Credential {
	var own []source.Credential
	for _, c := range held {
		if visits(s, &c) {
			own = append(own, c)
		}
	}
	slices.SortStableFunc(own, func(a, b source.Credential) int { return int(a.Block) - int(b.Block) })
	var out [][]source.Credential
	for i, c := range own {
		if i == 0 || own[i-1].Hash != c.Hash {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], c)
	}
	return out
}

// visits reports whether a credential is compared as one of a source.
func visits(s *source.Source, c *source.Credential) bool {
	return c.Source == s.ID && c.Version == s.Version && c.Lapsed == 0
}

// notVisited tells, by source, how many credentials are not compared because they lapsed, or because they are of a
// source or a version that is not among the given ones.
func notVisited(sources []*source.Source, held []source.Credential) []string {
	counts := map[string]int{}
	for i := range held {
		c := &held[i]
		if slices.ContainsFunc(sources, func(s *source.Source) bool { return visits(s, c) }) {
			continue
		}
		why := "the policy has no such source on the chain"
		if c.Lapsed > 0 {
			why = "no reading has confirmed them since, and they have no weight"
		}
		counts[fmt.Sprintf("version %d of %s: %s", c.Version, c.Source, why)]++
	}
	out := []string{}
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		out = append(out, fmt.Sprintf("%d credentials of %s", counts[what], what))
	}
	return out
}

// verify compares the credentials of one source and block.
func (r *Reader) verify(ctx context.Context, chain uint64, at repute.Block, s *source.Source, states []source.State,
	held []source.Credential, out *Checked) error {
	first := held[0]
	if first.Chain == chain {
		at = repute.Block{Number: first.Block, Hash: first.Hash, Time: time.Unix(int64(first.Read), 0).UTC()}
	}
	found, err := r.again(ctx, chain, at, s, states, held)
	if err != nil {
		return err
	}
	if found.Status == source.StatusIncomplete && s.Read.EAS != nil {
		now, err := r.Now(ctx, chain, []*source.Source{s})
		if err != nil {
			return err
		}
		if found, err = r.again(ctx, chain, now, s, states, held); err != nil {
			return err
		}
	} else if found.Status != source.StatusOff && found.Hash != first.Hash {
		out.Unchecked = append(out.Unchecked,
			fmt.Sprintf("%s: %d credentials of block %d of chain %d: it is read at block %d now",
				s.ID, len(held), first.Block, first.Chain, found.Block))
		return nil
	}
	out.Compare(s, held, &found)
	return nil
}

// again reads a source about the holders of credentials.
func (r *Reader) again(ctx context.Context, chain uint64, at repute.Block, s *source.Source, states []source.State,
	held []source.Credential) (source.Reading, error) {
	raters := make([]common.Address, len(held))
	for i, c := range held {
		raters[i] = c.Rater
	}
	readings, err := r.Read(ctx, chain, at, []*source.Source{s}, raters, source.Past{States: states})
	if err != nil {
		return source.Reading{}, err
	}
	return readings[0], nil
}

// Compare adds what differs between stored credentials of a source and a reading of them.
func (out *Checked) Compare(s *source.Source, held []source.Credential, found *source.Reading) {
	unknown := 0
	for i := range held {
		c := &held[i]
		at := slices.IndexFunc(found.Credentials, func(f source.Credential) bool { return f.Rater == c.Rater })
		var what string
		switch {
		case slices.Contains(found.Unknown, c.Rater):
			unknown++
			continue
		case found.Status == source.StatusOff:
			what = "the source is off: " + found.Reason
		case at < 0:
			what = "the contracts say that there is no credential"
			if s.Read.Payments != nil {
				what = "the verified payments do not reach the sum"
			}
		default:
			what = differs(s, c, &found.Credentials[at])
		}
		out.Credentials++
		if what != "" {
			out.Differences = append(out.Differences, Difference{s.ID, c.Rater, c.Block, what})
		}
	}
	if unknown > 0 {
		out.Unchecked = append(out.Unchecked,
			fmt.Sprintf("%s: %d credentials of block %d: %s", s.ID, unknown, held[0].Block,
				found.Reason))
	}
}

// differs says in what a stored credential differs from one that was found, "" for nothing. A later revocation is no
// difference. Times that only the first reading tells are not compared.
func differs(s *source.Source, stored, found *source.Credential) string {
	revoked := found.Revoked
	if revoked > stored.Read {
		revoked = 0
	}
	issued, renewed := stored.Issued, stored.Renewed
	if s.Read.EAS != nil && renewed > 0 { // what was read is the last of several attestations
		issued, renewed = renewed, found.Renewed
	}
	switch {
	case stored.Subject != found.Subject:
		return fmt.Sprintf("the person is %s, stored is %s", found.Subject, stored.Subject)
	case stored.Expires != found.Expires:
		return fmt.Sprintf("it expires at %d, stored is %d", found.Expires, stored.Expires)
	case stored.Revoked != revoked && stored.Revoked <= stored.Read:
		return fmt.Sprintf("it was revoked at %d, stored is %d", found.Revoked, stored.Revoked)
	case s.Dated() && (issued != found.Issued || renewed != found.Renewed && found.Hash == stored.Hash):
		return fmt.Sprintf("it was issued at %d and renewed at %d, stored are %d and %d", found.Issued, found.Renewed,
			stored.Issued, stored.Renewed)
	case stored.Hash == found.Hash && stored.Answer != found.Answer:
		return "what it rests on has another hash"
	}
	return ""
}
