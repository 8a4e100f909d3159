package scores

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/service"
	"repute/store"
	"repute/store/query"
	"repute/store/scoredb"
	"repute/trust/source"
	sourceread "repute/trust/source/read"
)

// asking has what check and verify need to read the sources of a chain.
type asking struct {
	// chain is the chain whose raters are meant; sources may be read on other ones. policy is never nil.
	chain   uint64
	policy  *source.Policy
	sources []*source.Source // that count on the chain and have an endpoint
	spent   []*source.Source // that are read from payments in the index
	reader  *sourceread.Reader
	past    source.Past // of run
	run     scoredb.Run // the newest one
	pruned  []string    // inputs of the run that are no longer stored
}

// ask opens a reader of the sources of the one chosen chain, calls f, and closes the reader. The policy is that of the
// configuration, or with asRun that of the chain's newest run if the run has one. With asRun sources whose home has no
// endpoint are kept, so that verify reports their credentials as not checked; check leaves them out.
func ask(ctx context.Context, p *cli.Program, c config.Config, db *store.DB, asRun bool, f func(*asking) error) error {
	policy, err := c.Trust.Policy()
	if err != nil {
		return err
	}
	if policy == nil && !asRun {
		return errNoSources()
	}
	stored, err := query.Chains(ctx, db)
	if err != nil {
		return err
	}
	c.Complete(cli.Plain(stored)...)
	a := &asking{policy: policy}
	if a.chain, err = theChain(ctx, p, c, db); err != nil {
		return err
	}
	if a.past, a.run, err = lastSources(ctx, db, a.chain); err != nil {
		return err
	}
	if asRun {
		if err := a.takeRun(ctx, db); err != nil {
			return err
		}
	}
	endpoints := service.New(c, db, c.Logger(p.Stderr))
	defer endpoints.Close()
	reader, err := endpoints.Sources(a.policy)
	if err != nil {
		return err
	}
	a.reader = reader
	for _, s := range a.policy.On(a.chain) {
		switch home := s.ReadOn(a.chain); {
		case s.Read.Payments != nil:
			a.spent = append(a.spent, s)
		case asRun || home == a.chain || reader.Reaches(home):
			a.sources = append(a.sources, s)
		}
	}
	return f(a)
}

// takeRun sets the policy to that of the run and notes which inputs of the run are no longer stored. Without the run's
// policy the configured one stays; credentials of other sources are then reported as not checked.
func (a *asking) takeRun(ctx context.Context, db *store.DB) error {
	none := common.Hash{}
	if a.run.Credentials != none {
		_, err := scoredb.ReadInput(ctx, db, a.run.Credentials)
		if err := a.notePruned("credentials", err); err != nil {
			return err
		}
	}
	if a.run.Sources != none && (a.policy == nil || a.policy.Hash() != a.run.Sources) {
		body, err := scoredb.ReadInput(ctx, db, a.run.Sources)
		if err == nil {
			a.policy, err = source.Parse(body)
		}
		if err := a.notePruned("policy of sources", err); err != nil {
			return err
		}
	}
	if a.policy == nil {
		return errNoSources()
	}
	return nil
}

// notePruned notes an input that is not stored, and returns any other error of reading it.
func (a *asking) notePruned(what string, err error) error {
	if errors.Is(err, repute.ErrNotFound) {
		a.pruned = append(a.pruned, fmt.Sprintf("the %s of run %d: not stored any more", what, a.run.Run))
		return nil
	}
	return err
}
