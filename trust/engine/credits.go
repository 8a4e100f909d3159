package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/replay"
	"repute/trust/source"
)

// SourceReader asks the sources of a chain, at a block, about raters. past is what the readings had found that the last
// epoch used. A source that cannot be read has a reading that says so; an error means that none could.
type SourceReader interface {
	// Reaches reports whether a chain can be asked.
	Reaches(chain uint64) bool
	Read(ctx context.Context, chain uint64, at repute.Block, sources []*source.Source, raters []common.Address,
		past source.Past) ([]source.Reading, error)
}

// noCredits is findCredits of graphs that are weighed by roots alone.
func noCredits(context.Context, *trust.GraphReader) (*trust.Credits, error) { return nil, nil }

// creditsOf puts credentials into the terms of scores as of a time.
func creditsOf(p *source.Policy, held []source.Credential, at time.Time) *trust.Credits {
	out := &trust.Credits{Rules: rulesOf(p), Agents: p.Budget.Agents, Days: p.Budget.Days}
	numbers := map[string]int{}
	for i, s := range p.Sources {
		numbers[s.ID] = i
	}
	for _, r := range p.Raters(held, uint64(max(0, at.Unix()))) {
		for _, part := range r.Parts {
			out.Raters = append(out.Raters, trust.RaterCredit{Rater: r.Address, Source: numbers[part.Source],
				Subject: part.Subject, Weight: part.Weight})
		}
	}
	return out
}

// rulesOf are the bounds of a policy.
func rulesOf(p *source.Policy) (rules flow.SourceRules) {
	bounds := func(b source.Bounds) flow.SourceBounds { return flow.SourceBounds{Praise: b.Praise, Blame: b.Blame} }
	rules.All = bounds(p.All)
	classes := slices.Sorted(maps.Keys(p.Classes))
	for _, id := range classes {
		c := p.Classes[id]
		class := flow.SourceClass{ID: string(id), Rater: fixed.One, SourceBounds: bounds(c.Bounds)}
		if c.InAll {
			class.Rater = c.Weight
		}
		rules.Classes = append(rules.Classes, class)
	}
	for _, s := range p.Sources {
		rules.Sources = append(rules.Sources, flow.Source{ID: s.ID, Class: slices.Index(classes, s.Class),
			SourceBounds: bounds(s.Bounds)})
	}
	return rules
}

// sourcesOn are the sources that count on the chain and are read there, or on a home that can be asked.
func (k *keeper) sourcesOn() []*source.Source {
	if k.sources == nil {
		return nil
	}
	return slices.DeleteFunc(k.sources.On(k.chain), func(s *source.Source) bool {
		return s.Home(k.chain) == nil && (k.ask == nil || !k.ask.Reaches(s.Homes[0].Chain) || !k.ask.Reaches(k.chain))
	})
}

// policyHash names the policy of sources, zero where none counts on the chain.
func (k *keeper) policyHash() common.Hash {
	if len(k.sourcesOn()) == 0 {
		return common.Hash{}
	}
	return k.sources.Hash()
}

// askedSources remembers for how long an epoch has waited for sources that do not answer.
type askedSources struct {
	boundary uint64    // of the epoch that waits, 0 for none
	again    time.Time // when to ask again
}

// errSourcesWait says that an epoch waits for sources.
var errSourcesWait = errors.New("sources do not answer; after the next epoch's end their last readings count")

// askAgain is how long an epoch that waits does nothing.
const askAgain = time.Minute

// waits reports whether a run waits for sources, and it is too early to ask them again.
func (a *askedSources) waits(run, last trustdb.Run) bool {
	return run.Boundary > last.Boundary && run.Boundary == a.boundary && time.Now().Before(a.again)
}

// hold reports whether a run of a new epoch is to wait: until its sources answer, but no longer than to the end of the
// next epoch. The first run of a chain never waits.
func (a *askedSources) hold(run, last trustdb.Run) bool {
	if last.Run == 0 || run.Boundary <= last.Boundary || a.boundary > 0 && run.Boundary > a.boundary {
		*a = askedSources{}
		return false
	}
	*a = askedSources{run.Boundary, time.Now().Add(askAgain)}
	return true
}

// askSources asks the sources of the chain about raters at the run's block, stores what they say and names it in the
// run. What one does not answer is as the last run had it, for as long as the policy allows.
func (k *keeper) askSources(ctx context.Context, run *trustdb.Run, last trustdb.Run, raters []common.Address) (*trust.Credits,
	error) {
	sources := k.sourcesOn()
	if len(sources) == 0 {
		return nil, nil
	}
	held, before, err := k.lastReadings(ctx, last)
	if err != nil {
		return nil, err
	}
	past := source.Past{States: before, Credentials: held}
	readings := k.readSources(ctx, run.Block, sources, raters, past)
	fails := slices.ContainsFunc(readings, func(r source.Reading) bool {
		was := stateOf(before, r.Source) // no epoch waits again for a source that did not answer the one before
		return r.Status == source.StatusIncomplete && (was == nil || was.Status != source.StatusIncomplete)
	})
	if fails && k.asks.hold(*run, last) {
		return nil, errSourcesWait
	}
	k.asks = askedSources{}
	var now []source.Credential
	states := make([]source.State, len(readings))
	for i := range readings {
		states[i] = readings[i].State
		now = append(now, k.sources.Settle(held, &readings[i])...)
		k.tellSource(&states[i], before)
	}
	body, err := source.Encode(now)
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(states)
	if err != nil {
		return nil, fmt.Errorf("encode the readings of sources: %w", err)
	}
	run.Credentials, run.Readings = replay.HashInput(body), string(asked)
	return creditsOf(k.sources, now, run.Block.Time), k.keep(ctx, k.sources.Encode(), body)
}

// readSources reads all sources. One that cannot be asked here is incomplete.
func (k *keeper) readSources(ctx context.Context, at repute.Block, sources []*source.Source, raters []common.Address,
	past source.Past) []source.Reading {
	reason := "this process has no endpoint of the chain"
	if at.Time.IsZero() {
		reason = "the time of the epoch's last block is unknown"
	} else if k.ask != nil {
		readings, err := k.ask.Read(ctx, k.chain, at, sources, raters, past)
		if err == nil {
			return readings
		}
		reason = err.Error()
	}
	out := make([]source.Reading, len(sources))
	for i, s := range sources {
		out[i] = source.Reading{Unknown: raters, State: source.State{Source: s.ID, Chain: k.chain, Status: source.StatusIncomplete,
			Reason: reason, Block: at.Number, Hash: at.Hash, Time: uint64(max(0, at.Time.Unix()))}}
		if was := stateOf(past.States, s.ID); was != nil {
			out[i].Implementations = was.Implementations
		}
	}
	return out
}

// stateOf is that of one source, nil where there is none.
func stateOf(states []source.State, id string) *source.State {
	at := slices.IndexFunc(states, func(s source.State) bool { return s.Source == id })
	if at < 0 {
		return nil
	}
	return &states[at]
}

// lastReadings are the credentials that the last run used, and how the readings of its sources went. They are empty
// where they are not stored any more.
func (k *keeper) lastReadings(ctx context.Context, last trustdb.Run) (held []source.Credential, states []source.State,
	err error) {
	if last.Credentials == (common.Hash{}) {
		return nil, nil, nil
	}
	body, err := trustdb.ReadInput(ctx, k.db, last.Credentials)
	if errors.Is(err, repute.ErrNotFound) {
		return nil, nil, nil
	}
	if err == nil {
		held, err = source.Decode(body)
	}
	if err == nil {
		err = json.Unmarshal([]byte(last.Readings), &states)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("readings of sources of run %d: %w", last.Run, err)
	}
	return held, states, nil
}

// tellSource logs that the state of a source is another one than before.
func (k *keeper) tellSource(now *source.State, before []source.State) {
	was := stateOf(before, now.Source)
	if was != nil && was.Status == now.Status || was == nil && now.Status == source.StatusOK {
		return
	}
	log := k.log.Warn
	if now.Status == source.StatusOK {
		log = k.log.Info
	}
	log("a source changed its state", "chain", k.chain, "source", now.Source, "status", now.Status, "reason",
		strings.TrimSpace(now.Reason))
}
