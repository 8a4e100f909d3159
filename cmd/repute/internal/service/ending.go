package service

import (
	"fmt"

	"repute"
	"repute/cmd/repute/internal/config"
)

// Ending is the condition at which a service ends by itself; the zero value is never.
type Ending struct {
	Until uint64 // block that the one chain must have indexed; 0: none
	Once  bool   // every chain must have indexed the head that its node had at the start
}

// Comes reports whether the service ends by itself.
func (e Ending) Comes() bool { return e != Ending{} }

// Check refuses conditions that never occur.
func (e Ending) Check(c config.Config) error {
	switch {
	case !e.Comes():
	case !c.Has("indexer"):
		return repute.Invalid("roles", "--once and --until-block need the role indexer", "e.g. --roles indexer")
	case e.Until > 0 && e.Once:
		return repute.Invalid("until-block", "given with --once", "one of the two")
	case e.Until > 0 && len(c.Chains) != 1:
		return repute.Invalid("until-block", fmt.Sprintf("%d chains are followed", len(c.Chains)),
			"use it with one --chain")
	}
	return nil
}
