package answers

import (
	"time"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/store/query"
	"repute/trust/statement"
)

// SignedAt parses the parameter signed and returns the view of the answer: finalized when signed is set. Any other view
// is then refused, because an agent that has become bad since could get a new statement of an old, good score.
func SignedAt(flag httpapi.Flag, at string) (signed bool, view string, err error) {
	if signed, err = flag.Bool("signed"); err != nil || !signed {
		return false, at, err
	}
	if at != "" && at != string(repute.Finalized) {
		return true, at, repute.Invalid("at", "only the newest final score is signed",
			"leave at out, or give finalized")
	}
	return true, string(repute.Finalized), nil
}

// maxEpochsBehind is how many epochs may have become final since the closed one whose scores are signed. A server whose
// trust engine has stopped MUST NOT sign old scores.
const maxEpochsBehind = 3

// maxUnseen is how old the last look at the chain's head may be for scores to be signed. A server whose indexer has
// stopped MUST NOT sign. It is longer than a restart or a short outage of the node takes.
const maxUnseen = 15 * time.Minute

// SignedScore signs an agent's newest final score. r MUST be read from one database snapshot, because it has the score,
// the run whose block the score holds at, and the age of the view. repute.ErrConflict means that no key is configured,
// that there is no final score, or that it is too old.
//
// The checks come in an order in which the message names what to mend first: no key, no score, no epoch, unproven
// blocks, a trust engine that stopped, an indexer that stopped. All of them are repute.ErrConflict, because the request
// is right and the state of the server is not. now is also the time of the signature.
func (x *Index) SignedScore(r *query.Reputation, now time.Time) (*wire.SignedScore, error) {
	if x.Signer == nil {
		return nil, repute.Conflict("this server signs nothing: its configuration names no key (signing.key, " +
			"docs/reference/statements.md); ask without signed")
	}
	run, final := r.Run, r.AsOf.Block.Number
	if r.Score.Run == 0 {
		return nil, repute.Conflict("agent %s has no final score at that block: ask without signed", r.Agent.Short())
	}
	switch epoch := run.Boundary / max(run.Epoch, 1); {
	case epoch == 0 || run.Epoch == 0:
		return nil, repute.Conflict("no epoch of the chain has ended yet: nothing is signed")
	case !run.Verified():
		return nil, repute.Conflict("the blocks up to %d that the newest final scores follow from are not verified "+
			"(proven up to %d): nothing is signed until they are", run.Boundary, run.VerifiedTo)
	case final >= run.Boundary+(maxEpochsBehind+1)*epoch:
		return nil, repute.Conflict("scores are behind: the newest final ones are of block %d, and block %d is final; "+
			"nothing is signed until they follow", run.Boundary, final)
	case !r.AsOf.HeadSeenAt.IsZero() && now.Sub(r.AsOf.HeadSeenAt) > maxUnseen:
		return nil, repute.Conflict("the chain's head was last seen at %s: nothing is signed until the indexer follows "+
			"it again", r.AsOf.HeadSeenAt.UTC().Format(time.RFC3339))
	}
	signed, err := x.Signer.Sign(r.Score, statement.HoldsAsOf{Number: run.Block.Number, Time: run.Block.Time,
		VerifiedTo: run.VerifiedTo}, now)
	if err != nil {
		return nil, err
	}
	return &wire.SignedScore{Signed: signed}, nil
}
