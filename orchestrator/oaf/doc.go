// Package oaf makes agents of the Open Agent Format modules of the orchestrator. Every call of a model or a
// tool goes through the run's Context: it is counted, charged and journaled, and work for other agents is a run
// of its own behind the trust gate.
package oaf
