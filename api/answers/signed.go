package answers

import (
	"time"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/query"
	"repute/trust/statement"
)

// SignedAt is the view that a signed answer is of: the finalized one. An older one is not
// signed: whoever became bad since would get a fresh statement of better days.
func SignedAt(flag httpapi.Flag, at string) (signed bool, view string, err error) {
	if signed, err = flag.Bool("signed"); err != nil || !signed {
		return false, at, err
	}
	if at != "" && at != string(repute.Finalized) {
		return true, at, repute.Invalid("at", "only the newest final score is signed", "leave at out, or give finalized")
	}
	return true, string(repute.Finalized), nil
}

// maxEpochsBehind is how many whole epochs may have become final since the closed one whose
// scores are signed: an engine that stands still must not vouch for the past.
const maxEpochsBehind = 3

// maxUnseen is for how long the chain's head may not have been looked at where scores are
// signed: an indexer that stands still must not vouch for the present.
const maxUnseen = 15 * time.Minute

// SignedScore signs an agent's newest final score. What was read is of one snapshot: the
// score, the run that says as of which block it holds, and how new the view is.
// repute.ErrConflict: no key is configured, there is no final score, or it is too old.
func (x *Index) SignedScore(r *query.Reputation, now time.Time) (*wire.SignedScore, error) {
	if x.Signer == nil {
		return nil, repute.Conflict("this server signs nothing: its configuration names no key (signing.key, docs/reference/statements.md); ask without signed")
	}
	run, final := r.Run, r.AsOf.Block.Number
	if r.Score.Run == 0 {
		return nil, repute.Conflict("agent %s has no final score at that block: ask without signed", r.Agent.Short())
	}
	switch epoch := run.Boundary / max(run.Epoch, 1); {
	case epoch == 0 || run.Epoch == 0:
		return nil, repute.Conflict("no epoch of the chain has ended yet: nothing is signed")
	case !run.Verified():
		return nil, repute.Conflict("the blocks up to %d that the newest final scores follow from are not verified (proven up to %d): nothing is signed until they are",
			run.Boundary, run.VerifiedTo)
	case final >= run.Boundary+(maxEpochsBehind+1)*epoch:
		return nil, repute.Conflict("scores are behind: the newest final ones are of block %d, and block %d is final; nothing is signed until they follow", run.Boundary, final)
	case !r.AsOf.HeadSeenAt.IsZero() && now.Sub(r.AsOf.HeadSeenAt) > maxUnseen:
		return nil, repute.Conflict("the chain's head was last seen at %s: nothing is signed until the indexer follows it again", r.AsOf.HeadSeenAt.UTC().Format(time.RFC3339))
	}
	signed, err := x.Signer.Sign(r.Score, statement.HoldsAsOf{Number: run.Block.Number, Time: run.Block.Time,
		VerifiedTo: run.VerifiedTo}, now)
	if err != nil {
		return nil, err
	}
	return &wire.SignedScore{Signed: signed}, nil
}
