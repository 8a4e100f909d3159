package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust/fixed"
	"repute/trust/graph"
	"repute/trust/rating"
	"repute/trust/replay"
	"repute/trust/source"
)

// errSourcesWait is returned by begin while an epoch waits for sources that do not answer.
var errSourcesWait = errors.New("sources do not answer; after the next epoch's end their last readings count")

const (
	// retrySources is the pause before a waiting epoch asks its sources again.
	retrySources = time.Minute
	// maxSourceRead bounds one reading of all sources of a chain. Storing what was read is not bounded by it.
	maxSourceRead = 15 * time.Minute
)

// sourceRetry is the time at which an epoch that waits for sources reads them again. walk sets it.
type sourceRetry struct {
	boundary uint64 // last block of the epoch, 0 when no epoch waits
	at       time.Time
}

// early reports whether an epoch waits and its next try is not due yet.
func (r sourceRetry) early(boundary uint64) bool {
	return r.boundary == boundary && time.Now().Before(r.at)
}

// mayWait reports whether a run may wait for sources: it is of the epoch that follows that of the last run, and no
// later epoch has ended. The result follows from stored runs only, so that a restart neither ends nor prolongs the
// wait.
func mayWait(run, last scoredb.Run) bool {
	length := run.Boundary / max(run.Epoch, 1)
	return last.Run > 0 && run.Boundary > last.Boundary && run.Boundary <= last.Boundary+length
}

// sourcesOf returns the hash of the next run's policy of sources, zero when no source counts on the chain. When two
// engines have different policies, the engine that was started last decides, as it does for parameters.
func (k *keeper) sourcesOf(last scoredb.Run) (common.Hash, error) {
	if k.settled && last.Run > 0 {
		return last.Sources, nil
	}
	states, err := statesOf(&last)
	if err != nil || len(k.sourcesOn(k.sources, states)) == 0 {
		return common.Hash{}, err
	}
	return k.sources.Hash(), nil
}

// policyOf returns the policy of sources with a hash, nil for the zero hash. The policy of another engine is read from
// the database.
func (k *keeper) policyOf(ctx context.Context, hash common.Hash) (*source.Policy, error) {
	switch {
	case hash == common.Hash{}:
		return nil, nil
	case k.sources != nil && k.sources.Hash() == hash:
		return k.sources, nil
	case k.policy != nil && k.policy.Hash() == hash:
		return k.policy, nil
	}
	body, err := scoredb.ReadInput(ctx, k.db, hash)
	if err != nil {
		return nil, err
	}
	p, err := source.Parse(body)
	if err != nil {
		return nil, fmt.Errorf("policy of sources %s of another engine: %w", hash, err)
	}
	k.policy = p
	return p, nil
}

// sourceReadings holds the readings of a run's sources, and what the last run had.
type sourceReadings struct {
	policy   *source.Policy
	held     []source.Credential // by the last run
	before   []source.State
	readings []source.Reading // of the sources that are read on chains
	paid     []paidBy         // of the other ones
}

// askSources reads the sources of a run, without a policy when no source counts. begin calls it once per run.
// errSourcesWait means that the run must be made later.
func (k *keeper) askSources(ctx context.Context, run *scoredb.Run, last scoredb.Run) (*sourceReadings, error) {
	policy, err := k.policyOf(ctx, run.Sources)
	if err != nil || policy == nil {
		return &sourceReadings{}, err
	}
	read, err := statesOf(&last)
	if err != nil {
		return nil, err
	}
	ask := slices.DeleteFunc(k.sourcesOn(policy, read), func(s *source.Source) bool { return s.Read.Payments != nil })
	held, before, err := k.lastReadings(ctx, last, read)
	if err != nil {
		return nil, err
	}
	readings, err := k.readSources(ctx, run, ask, source.Past{States: before, Credentials: held})
	if err != nil {
		return nil, err
	}
	if mayWait(*run, last) && slices.ContainsFunc(readings,
		func(r source.Reading) bool { return failsAnew(r, before) }) {
		return nil, errSourcesWait
	}
	reading, cancel := context.WithTimeout(ctx, MaxGraphRead)
	defer cancel()
	paid, err := readPaid(reading, k.db, *run, k.sourcesOn(policy, nil))
	return &sourceReadings{policy, held, before, readings, paid}, err
}

// settleSources adds the readings of payments to those of sources, stores the credentials and sets Credentials and
// Readings of the run. Raters without an answer keep the credentials of the last run for as long as the policy allows.
func (k *keeper) settleSources(ctx context.Context, run *scoredb.Run, w *Walked, got *sourceReadings) (*graph.Credits,
	error) {
	if got.policy == nil {
		return nil, nil
	}
	readings := got.readings
	for _, p := range got.paid {
		readings = append(readings, w.spent(p))
	}
	now, states := k.settleReadings(got.policy, got.held, got.before, readings)
	body, err := source.Encode(now)
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(states)
	if err != nil {
		return nil, fmt.Errorf("encode the readings of sources: %w", err)
	}
	run.Credentials, run.Readings = replay.HashInput(body), string(asked)
	return creditsOf(got.policy, now, run.Block.Time), k.keep(ctx, got.policy.Encode(), body)
}

// failsAnew reports whether a source is incomplete and was not so in the epoch before. An epoch waits only for such
// sources, not for those that are incomplete a second time.
func failsAnew(r source.Reading, before []source.State) bool {
	was := source.StateOf(before, r.Source)
	return r.Status == source.StatusIncomplete && (was == nil || was.Status != source.StatusIncomplete)
}

// settleReadings returns the credentials of all sources after their readings, and the states of the readings.
func (k *keeper) settleReadings(policy *source.Policy, held []source.Credential, before []source.State,
	readings []source.Reading) (now []source.Credential, states []source.State) {
	for i := range readings {
		r := &readings[i]
		state, settled := r.State, policy.Settle(held, r)
		if was := source.StateOf(before, r.Source); state.Status == source.StatusOK {
			state.Complete = state.Time
		} else if was != nil {
			state.Complete = was.Complete
		}
		for j := range settled {
			if settled[j].Read < r.Time && settled[j].Lapsed == 0 {
				state.Kept++
			}
		}
		now, states = append(now, settled...), append(states, state)
		k.logState(&state, before)
	}
	return now, states
}

// readSources reads all sources about the raters of the run's view, and returns one reading of each, in the order of
// sources. A source without a usable reading is incomplete about all raters.
func (k *keeper) readSources(ctx context.Context, run *scoredb.Run, sources []*source.Source,
	past source.Past) ([]source.Reading, error) {
	if len(sources) == 0 { // finding the raters of ten million ratings takes seconds
		return nil, nil
	}
	validations, err := scoredb.ReadInput(ctx, k.db, run.Validations)
	if err != nil {
		return nil, err
	}
	contracts, err := replay.DecodeValidations(validations)
	if err != nil {
		return nil, err
	}
	raters, err := trustdb.Raters(ctx, k.db, k.chain, run.Block.Number, contracts)
	if err != nil {
		return nil, err
	}
	at, reason := run.Block, "this process has no endpoint of the chain"
	var readings []source.Reading
	asked := slices.DeleteFunc(slices.Clone(sources), func(s *source.Source) bool { return !k.asks(s) })
	if at.Time.IsZero() {
		reason = "the time of the epoch's last block is unknown"
	} else if k.ask != nil && len(asked) > 0 {
		reason = ""
		if readings, err = k.readWithin(ctx, at, asked, raters, past); err != nil {
			reason, readings = err.Error(), nil
		}
		if ctx.Err() != nil { // the engine ends
			return nil, ctx.Err()
		}
	}
	out := make([]source.Reading, len(sources))
	for i, s := range sources {
		one, fault := s.ReadingAmong(readings, raters)
		if fault == "" {
			out[i] = one
			continue
		}
		switch {
		case !k.asks(s):
			fault = fmt.Sprintf("this process has no endpoint of chain %d", s.Homes[0].Chain)
		case reason != "":
			fault = reason
		}
		out[i] = s.Unanswered(k.chain, at, raters, fault)
		if s.Home(k.chain) == nil { // its credentials are of the home
			out[i].Chain, out[i].Block, out[i].Hash = s.Homes[0].Chain, 0, common.Hash{}
		}
		if was := source.StateOf(past.States, s.ID); was != nil {
			out[i].Implementations = was.Implementations
		}
	}
	return out, nil
}

// readWithin asks the reader for at most the limit of a reading.
func (k *keeper) readWithin(ctx context.Context, at repute.Block, sources []*source.Source, raters []common.Address,
	past source.Past) ([]source.Reading, error) {
	ctx, cancel := context.WithTimeout(ctx, k.limit)
	defer cancel()
	return k.ask.Read(ctx, k.chain, at, sources, raters, past)
}

// lastReadings returns the credentials that the last run used, and read, the states of its readings, with the pinned
// implementations. The credentials are empty when they are no longer stored. Pinned implementations are those of the
// newest run that names them, even when later runs read no source.
func (k *keeper) lastReadings(ctx context.Context, last scoredb.Run, read []source.State) (held []source.Credential,
	states []source.State, err error) {
	if states, err = k.addPins(ctx, read); err != nil || last.Credentials == (common.Hash{}) {
		return nil, states, err
	}
	body, err := scoredb.ReadInput(ctx, k.db, last.Credentials)
	if errors.Is(err, repute.ErrNotFound) {
		k.log.Warn("the credentials of the last epoch are not stored", "chain", k.chain, "run", last.Run)
		return nil, states, nil
	}
	if err == nil {
		held, err = source.Decode(body)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("credentials of run %d: %w", last.Run, err)
	}
	return held, states, nil
}

// addPins sets the pinned implementations of states, and adds states of sources that the last run did not read.
func (k *keeper) addPins(ctx context.Context, states []source.State) ([]source.State, error) {
	pins, err := trustdb.ReadPins(ctx, k.db, k.chain)
	if err != nil {
		return nil, err
	}
	for _, body := range pins {
		var pin source.State
		if err := json.Unmarshal(body, &pin); err != nil {
			return nil, fmt.Errorf("pinned implementations of sources: %w", err)
		}
		at := slices.IndexFunc(states,
			func(s source.State) bool { return s.Source == pin.Source && s.Chain == pin.Chain })
		switch {
		case at < 0:
			states = append(states, pin)
		case len(states[at].Implementations) == 0:
			states[at].Implementations = pin.Implementations
		}
	}
	return states, nil
}

// logState logs the state of a source when its status differs from that of the epoch before.
func (k *keeper) logState(now *source.State, before []source.State) {
	was := source.StateOf(before, now.Source)
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

// toFifty returns the price of the credentials that lift a new agent to a score of 50, nil when no source is read. That
// takes as many units of the best opinion as the prior has: Evidence.Base.
func (k *keeper) toFifty(ctx context.Context, run *scoredb.Run, p *rating.Params) (*repute.LiftPrice, error) {
	policy, err := k.policyOf(ctx, run.Sources)
	if err != nil || policy == nil {
		return nil, err
	}
	states, err := statesOf(run)
	if err != nil {
		return nil, err
	}
	lift := policy.LiftPrice(k.sourcesOn(policy, states), p.Evidence.Base)
	return &repute.LiftPrice{Cents: int64(lift.Dollars.Scaled(100, 1) / fixed.One), OutOfReach: lift.OutOfReach,
		Units: int64(lift.Units.Scaled(1000, 1) / fixed.One), Priced: lift.Priced, Unpriced: lift.Unpriced}, nil
}
