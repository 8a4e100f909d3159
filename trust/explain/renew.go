package explain

import (
	"context"
	"errors"

	"repute"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/engine"
	"repute/trust/rows"
)

// renew finds what the newest run makes of a score that was kept from an earlier run, where
// that shows the same: of a final one the newest closed run. It finds none when the stored
// score is of that run, or the run makes another one that is about to be stored: then the
// stored one is told by its own run, whose graph somebody had in use until now. The score
// stays the stored one; world and evidence are those of the newest run.
func (r *Reader) renew(ctx context.Context, c *judged) (found bool, err error) {
	id := c.score.Agent
	newest := func(ctx context.Context, chain uint64) (scoredb.Run, error) {
		return scoredb.ReadClosedRun(ctx, r.db, chain)
	}
	if !c.score.Final {
		newest = func(ctx context.Context, chain uint64) (scoredb.Run, error) {
			return scoredb.ReadRun(ctx, r.db, chain, 0)
		}
	}
	run, err := newest(ctx, id.ChainID)
	if err != nil || run.Run == c.score.Run {
		return false, err
	}
	n := judged{asOf: c.asOf, score: c.score}
	if n.world, err = r.worldFor(ctx, run); err != nil {
		return false, err
	}
	var as *uint64
	if c.score.Final {
		as = &run.Block.Number
	}
	subjects, err := trustdb.ReadSubjects(ctx, r.db, id.ChainID, []repute.TokenID{id.TokenID}, as, n.world.Validations)
	if err != nil || len(subjects) == 0 {
		return false, err
	}
	subjects[0].Block = run.Block
	if as == nil && subjects[0].Updated.Number > run.Block.Number {
		subjects[0].Block = subjects[0].Updated
	}
	n.evidence = rows.EvidenceOf(subjects[0], n.world.Weights, n.world.Scales)
	err = r.addManifest(ctx, &n)
	if errors.Is(err, repute.ErrGone) { // something happened since, as of which there is no score yet
		return false, nil
	}
	if err != nil || n.evidence.Validations != run.Validations {
		return false, err
	}
	result := trust.Score(n.evidence, n.world.Params)
	again, err := engine.StoredScore(&result)
	if err != nil || !shownSame(&again, &c.score) {
		return false, err
	}
	*c = n
	return true, nil
}

// shownSame reports whether two scores show the same but for what age changes.
func shownSame(a, b *repute.Score) bool {
	near := func(x, y repute.Points) bool { return max(x-y, y-x) < scoredb.Tolerance }
	return a.Status == b.Status && a.Tier == b.Tier && near(a.Score, b.Score) && near(a.Low, b.Low) &&
		near(a.High, b.High) && near(a.Mean, b.Mean)
}
