// Package builtin registers the agents that are part of this binary, so that tasks and plans name them as they name
// agents on other servers: by a slug, with a manifest, and with the proof that the program may work under the agent's
// identity.
//
// The proof of such an agent is the address of its configured key: it holds while that address is the agent's wallet
// or owner in the index, which the trust gate looks up for each decision. Register is idempotent, and is called at
// each start of an engine: what is stored of an agent follows the binary and its configuration. The time of a proof
// is kept while the key stays. An agent that could not work under its identity is logged here, at the start, and not
// only when its first task is refused.
package builtin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/orchestrator/journal"
	"repute/orchestrator/standard"
	"repute/orchestrator/trustgate"
	"repute/store"
	"repute/store/rundb"
)

// Registrar registers agents. Db and Log are required.
type Registrar struct {
	Db *store.DB
	// Keys returns the signing address of an agent on a chain. Nil: no agent has a key.
	Keys func(chainID uint64, slug string) (common.Address, error)
	// TrustChain is the chain whose key an agent without identity has.
	TrustChain uint64
	// Lenient lets agents work that the trust gate would refuse: nothing is logged about them.
	Lenient bool
	Log     *slog.Logger
}

// Register stores an agent by its slug, with its manifest and the key that it has. isDry says that it has a dry run.
// It logs what the trust gate would refuse later.
func (r *Registrar) Register(ctx context.Context, slug string, manifest standard.Manifest, isDry bool) error {
	known, err := rundb.Module(ctx, r.Db, slug)
	if err != nil && !errors.Is(err, repute.ErrNotFound) {
		return err
	}
	if id, err := manifest.Identity(); err != nil {
		return fmt.Errorf("agent %q: %w", slug, err)
	} else if id != nil {
		known.Agent = id
	}
	known.Slug, known.URL, known.Manifest, known.DryRun = slug, "", journal.JSON(manifest), isDry
	r.prove(&known)
	if err := rundb.SaveModule(ctx, r.Db, known); err != nil {
		return err
	}
	r.warn(ctx, known)
	return nil
}

// prove notes the key that an agent has.
func (r *Registrar) prove(m *repute.Module) {
	before := m.Proof
	m.Proof = repute.ModuleProof{}
	if r.Keys == nil {
		return
	}
	chain := r.TrustChain
	if m.Agent != nil {
		chain = m.Agent.ChainID
	}
	key, err := r.Keys(chain, m.Slug)
	switch {
	case err != nil:
	case before.Kind == repute.ProofKey && before.Signer == key:
		m.Proof = before
	default:
		m.Proof = repute.ModuleProof{Kind: repute.ProofKey, Signer: key, At: time.Now().UTC()}
	}
}

// warn logs at the start what the gate would refuse later. An agent that is not indexed yet causes
// no warning.
func (r *Registrar) warn(ctx context.Context, m repute.Module) {
	if m.Agent == nil || r.Lenient {
		return
	}
	p := trustgate.ProofOf(m, true)
	if err := p.Look(ctx, r.Db, *m.Agent); err != nil {
		r.Log.Info("the proof of an agent's identity could not be looked at yet", "agent", m.Slug, "error", err)
	} else if fault := p.Fault(); fault != "" {
		r.Log.Error("an agent cannot work under its identity", "agent", m.Slug, "identity", m.Agent.String(), "reason",
			fault)
	}
}
