// Package answers computes the answers that REST, GraphQL and the tools of MCP have in common. Protocols are left to
// the packages that call it.
//
// It has two parts. The types whose names end in Query are the parameters of operations, as text with the tags of their
// documentation; their methods Filter, Plan and ReadDemand parse them, and an error names the parameter and what is
// allowed. An Index answers: it resolves ids, and returns scores by the chain's or the caller's roots, explanations,
// decisions, signed scores, histories, rankings and manifests, in the types of package wire.
//
// An answer is of one database snapshot. The context of Demand makes all reads wait for a block that the caller knows.
//
// What costs more than a request has a limit of its own for each caller, which is taken from the context: walks of the
// trust graph (explanations, and scores by the caller's roots) and reads of files that a caller asks for. The errors of
// the store pass unchanged, with a hint where nothing was found (UnknownAgent).
package answers

import (
	"fmt"

	"repute"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/policy"
	"repute/store"
	"repute/trust/explain"
	"repute/trust/statement"
)

// Options say what an Index reads. Server and DB are needed; the zero value of everything else
// works.
type Options struct {
	// Server limits what callers may ask for.
	Server *httpapi.Server
	DB     *store.DB
	// DefaultChain completes bare token ids where several chains are indexed.
	DefaultChain uint64
	// Version of the program, shown by the status.
	Version string
	// Trust tunes explanations of scores and scores by a caller's roots.
	Trust explain.Options
	// Signer signs final scores for those who ask. Nil: nothing is signed.
	Signer *statement.Signer
	// Intents finds the intents of manifests. Nil: by their words.
	Intents IntentFinder
}

// Index reads the database for REST, GraphQL and the tools alike. Make one with New. It is safe for concurrent use: it
// does not change after New, but for the counters of its two limiters, which all protocols share, so that a caller has
// no second budget by another protocol.
type Index struct {
	// DB is what is read, also by the packages that call this one.
	DB           *store.DB
	defaultChain uint64
	version      string
	limited      bool             // whether the two limiters below apply
	refreshes    *httpapi.Limiter // of refreshes, which cost others a fetch
	walks        *httpapi.Limiter // of explanations, and of walks by a caller's roots
	trust        *explain.Reader
	payments     *policy.Policy // of decisions by the value at risk
	bare         *policy.Policy // of decisions by the caller's thresholds alone
	intents      IntentFinder
	// Signer signs final scores. Nil: nothing is signed.
	Signer *statement.Signer
}

// New returns an index that reads the database of o. It asks nothing of the database yet. Both built-in policies are
// parsed here, because a mistake in their text should stop the start and not a request. A negative Limits.Rate of the
// server switches its limits off.
func New(o Options) (x *Index, err error) {
	x = &Index{DB: o.DB, defaultChain: o.DefaultChain, version: o.Version, Signer: o.Signer,
		limited:   o.Server.Limits.Rate >= 0,
		refreshes: o.Server.Limiter("refresh", 1/refreshPeriod.Seconds(), refreshBurst),
		walks:     o.Server.Limiter("walk", 1/walkPeriod.Seconds(), walkBurst)}
	if x.intents = o.Intents; x.intents == nil {
		x.intents = fullText{o.DB}
	}
	if x.trust, err = explain.NewReader(x.DB, o.Trust); err != nil {
		return nil, fmt.Errorf("trust: %w", err)
	}
	if x.payments, err = policy.ForPayments(); err != nil {
		return nil, err
	}
	if x.bare, err = policy.Parse([]byte(`version: "1"`)); err != nil {
		return nil, fmt.Errorf("policy without thresholds: %w", err)
	}
	return x, nil
}

// DefaultChain returns the chain of bare token ids where several chains are indexed; 0 for none.
func (x *Index) DefaultChain() uint64 { return x.defaultChain }

// TagSummary writes the ratings with one tag, in the unit of the tag dictionary. A tag that is not in the dictionary
// has no unit.
func (x *Index) TagSummary(t repute.TagSummary) wire.TagSummary {
	return wire.EncodeTag(t, x.trust.Unit(t.Tag))
}

// Latest is the newest view of a chain.
func Latest() repute.At { return repute.At{Finality: repute.Latest} }
