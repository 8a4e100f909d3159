package orchestrator

import (
	"repute"
	"repute/orchestrator/safety"
)

// records returns the records on a chain of the running agent and of the agents that it works for: what a sub-run
// may not change is also what those above it may not, or an agent would delegate the change.
func (w *work) records(chainID uint64) *safety.Records {
	return &safety.Records{Db: w.e.db, Registries: w.e.o.Registries, ChainID: chainID, Mine: w.identities(chainID)}
}

// identities returns the identities on a chain of the running agent and of the agents that it works
// for.
func (w *work) identities(chainID uint64) (out []repute.AgentID) {
	for ; w != nil; w = w.parent {
		if a := w.module.Agent; a != nil && a.ChainID == chainID {
			out = append(out, *a)
		}
	}
	return out
}
