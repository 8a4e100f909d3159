package explain

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/engine"
	"repute/trust/identity"
	"repute/trust/replay"
)

// Replay recomputes an agent's final score of the last epoch up to a block from what
// is stored, and gives it when every byte is as it was stored: the result, each number
// beside it, and the manifest of evidence. repute.ErrNotFound where there is no final
// score, a *replay.PrunedError where something it follows from is gone, a *DiffersError where
// the stored numbers are not those of the stored result.
func (r *Reader) Replay(ctx context.Context, id repute.AgentID, block uint64) (repute.Score, error) {
	at := repute.At{Block: block}
	score, asOf, err := r.storedScore(ctx, id, at)
	if err != nil {
		return score, err
	}
	c, err := r.caseOf(ctx, score, asOf, at)
	if err != nil {
		return c.score, err
	}
	if c.score.Run == 0 {
		return c.score, fmt.Errorf("no epoch that ended by block %d has a final score of agent %s: %w", block,
			id.Short(),
			repute.ErrNotFound)
	}
	return c.score, r.made(ctx, &c)
}

// ReplayPinned is Replay of the score that a pin names, even if its epoch had other runs
// since.
func (r *Reader) ReplayPinned(ctx context.Context, pin query.ScorePin) (repute.Score, error) {
	var c judged
	var err error
	if c.score, err = query.PinnedScore(ctx, r.db, pin); err != nil {
		return c.score, err
	}
	if err := r.follow(ctx, &c); err != nil {
		return c.score, err
	}
	return c.score, r.made(ctx, &c)
}

// made reports whether all that was read makes the stored score.
func (r *Reader) made(ctx context.Context, c *judged) error {
	if err := r.sameGateways(ctx, &c.world.Run); err != nil {
		return err
	}
	if err := c.same(); err != nil {
		return err
	}
	return c.sameIdentity(ctx, r.db)
}

// sameGateways compares a run's list of feedback gateways with the chain's present list, by which the payers of ratings
// are stored. A list that differs is a *replay.PrunedError: the payers by the run's list are not stored any more.
func (r *Reader) sameGateways(ctx context.Context, run *scoredb.Run) error {
	now, err := scoredb.AllowedGateways(ctx, r.db, run.ChainID)
	if err != nil {
		return err
	}
	if have := replay.HashGateways(run.ChainID, now); have != run.Gateways {
		return &replay.PrunedError{What: fmt.Sprintf("the payers of ratings by the list of feedback gateways with sha256 %s; "+
			"now the list has %s", run.Gateways, have)}
	}
	return nil
}

// DiffersError is a stored score with a number that its result does not have.
type DiffersError struct {
	Agent string // as in URLs
	Block uint64 // that the score follows from
	What  string // the member that is another
}

// Error says which number of which score is wrong.
func (e *DiffersError) Error() string {
	return fmt.Sprintf("the %s stored beside the score of agent %s at block %d is not the one of its result", e.What,
		e.Agent, e.Block)
}

// same reports whether the evidence makes the stored score.
func (c *judged) same() error {
	result := trust.Score(c.evidence, c.world.Params)
	again, err := engine.StoredScore(&result)
	if err != nil {
		return err
	}
	s := &c.score
	if !bytes.Equal(again.Result, s.Result) ||
		replay.HashInput(c.manifest.Rebuild(&c.evidence).Encode()) != s.Evidence {
		return &replay.PrunedError{What: fmt.Sprintf("the stored evidence of agent %s up to block %d makes another result",
			s.Agent.Short(), s.Block.Number)}
	}
	for _, column := range []struct {
		what string
		same bool
	}{{"status", again.Status == s.Status}, {"score", again.Score == s.Score}, {"low", again.Low == s.Low},
		{"high", again.High == s.High},
		{"mean", again.Mean == s.Mean}, {"confidence", again.Confidence == s.Confidence},
		{"tier", again.Tier == s.Tier}} {
		if !column.same {
			return &DiffersError{s.Agent.Short(), s.Block.Number, column.what}
		}
	}
	return nil
}

// sameIdentity repeats the checks by the registration file that they used: a
// *replay.PrunedError where its parse is gone or says otherwise. What no file tells, that a host
// was silent, is evidence by itself.
func (c *judged) sameIdentity(ctx context.Context, db *store.DB) error {
	i := c.evidence.Identity
	if i == nil || i.File == nil || i.File.ParserVersion == 0 {
		return nil
	}
	what := fmt.Sprintf("what version %d of the parser read in the file with sha256 %s", i.File.ParserVersion,
		i.File.SHA256)
	registration, sound, err := trustdb.RegistrationParse(ctx, db, i.File.SHA256, i.File.ParserVersion)
	if errors.Is(err, repute.ErrNotFound) {
		return &replay.PrunedError{What: what}
	}
	if err != nil {
		return err
	}
	known := i.Wallet == common.Address{} || slices.Contains(c.evidence.Self, i.Wallet)
	resolves := sound && !i.Gone
	if !known || resolves != i.Resolves || len(identity.Hosts(registration)) > i.Domains ||
		identity.Declares(c.evidence.Agent, i.Wallet, registration) != i.Declares {
		return &replay.PrunedError{What: what + " as it was then"}
	}
	return nil
}
