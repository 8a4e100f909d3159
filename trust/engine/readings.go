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
	"repute/store/trustdb"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/replay"
	"repute/trust/source"
)

// errSourcesWait is returned while an epoch waits for sources that do not answer.
var errSourcesWait = errors.New("sources do not answer; after the next epoch's end their last readings count")

const (
	// retrySources is the pause before a waiting epoch asks its sources again.
	retrySources = time.Minute
	// maxSourceRead bounds one reading of all sources of a chain.
	maxSourceRead = 15 * time.Minute
)

// sourceRetry is when an epoch that waits for sources asks them again.
type sourceRetry struct {
	boundary uint64 // of the epoch, 0 for none
	at       time.Time
}

// early reports whether it is too early to ask for an epoch again.
func (r sourceRetry) early(boundary uint64) bool {
	return r.boundary == boundary && time.Now().Before(r.at)
}

// mayWait reports whether a run may wait for sources: from the end of the epoch after the last run's to the end of
// the next one. It follows from stored runs alone, so that a restart neither ends the wait nor begins it again.
func mayWait(run, last trustdb.Run) bool {
	length := run.Boundary / max(run.Epoch, 1)
	return last.Run > 0 && run.Boundary > last.Boundary && run.Boundary <= last.Boundary+length
}

// sourcesOf returns the hash of the policy of sources that the next run has, zero where no source counts on the chain.
// As of parameters, of two engines with different policies the one that was started last decides.
func (k *keeper) sourcesOf(last trustdb.Run) common.Hash {
	if k.settled && last.Run > 0 {
		return last.Sources
	}
	if len(k.sourcesOn(k.sources)) == 0 {
		return common.Hash{}
	}
	return k.sources.Hash()
}

// policyOf returns the policy of sources with that hash, which may be another engine's; nil for the zero hash.
func (k *keeper) policyOf(ctx context.Context, hash common.Hash) (*source.Policy, error) {
	switch {
	case hash == common.Hash{}:
		return nil, nil
	case k.sources != nil && k.sources.Hash() == hash:
		return k.sources, nil
	case k.policy != nil && k.policy.Hash() == hash:
		return k.policy, nil
	}
	body, err := trustdb.ReadInput(ctx, k.db, hash)
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

// saidBySources is what the sources of a run said, and what they had said before.
type saidBySources struct {
	policy   *source.Policy
	held     []source.Credential // by the last run
	before   []source.State
	readings []source.Reading // of the sources that are read on chains
}

// askSources asks the sources of a run about the raters of its view, but for those that read payments; nil where none
// counts. errSourcesWait: the run is to be made later.
func (k *keeper) askSources(ctx context.Context, run *trustdb.Run, last trustdb.Run) (*saidBySources, error) {
	policy, err := k.policyOf(ctx, run.Sources)
	if err != nil || policy == nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, maxSourceRead)
	defer cancel()
	held, before, err := k.lastReadings(ctx, last)
	if err != nil {
		return nil, err
	}
	ask := slices.DeleteFunc(k.sourcesOn(policy), func(s *source.Source) bool { return s.Read.Payments != nil })
	readings, err := k.readSources(ctx, run, ask, source.Past{States: before, Credentials: held})
	if err != nil {
		return nil, err
	}
	if mayWait(*run, last) && slices.ContainsFunc(readings, func(r source.Reading) bool { return failsAnew(r, before) }) {
		return nil, errSourcesWait
	}
	return &saidBySources{policy, held, before, readings}, nil
}

// settleSources adds what payments say of raters to what sources said, stores the credentials that hold and names them
// in the run. What a source did not answer is as the last run had it, for as long as the policy allows.
func (k *keeper) settleSources(ctx context.Context, run *trustdb.Run, w *walked, said *saidBySources) (*trust.Credits,
	error) {
	if said == nil {
		return nil, nil
	}
	readings := said.readings
	for _, s := range k.sourcesOn(said.policy) {
		if s.Read.Payments == nil {
			continue
		}
		spent, err := w.spent(ctx, k.db, s)
		if err != nil {
			return nil, err
		}
		readings = append(readings, spent)
	}
	now, states := k.settleReadings(said.policy, said.held, said.before, readings)
	body, err := source.Encode(now)
	if err != nil {
		return nil, err
	}
	asked, err := json.Marshal(states)
	if err != nil {
		return nil, fmt.Errorf("encode the readings of sources: %w", err)
	}
	run.Credentials, run.Readings = replay.HashInput(body), string(asked)
	return creditsOf(said.policy, now, run.Block.Time), k.keep(ctx, said.policy.Encode(), body)
}

// failsAnew reports whether a source did not answer although it did the epoch before. No epoch waits for one that did
// not answer twice.
func failsAnew(r source.Reading, before []source.State) bool {
	was := stateOf(before, r.Source)
	return r.Status == source.StatusIncomplete && (was == nil || was.Status != source.StatusIncomplete)
}

// settleReadings returns the credentials that hold after readings, and how these went.
func (k *keeper) settleReadings(policy *source.Policy, held []source.Credential, before []source.State,
	readings []source.Reading) (now []source.Credential, states []source.State) {
	for i := range readings {
		r := &readings[i]
		state, settled := r.State, policy.Settle(held, r)
		if was := stateOf(before, r.Source); state.Status == source.StatusOK {
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
		k.tellSource(&state, before)
	}
	return now, states
}

// readSources reads all sources about the raters of the run's view, and returns one reading of each, in their order.
func (k *keeper) readSources(ctx context.Context, run *trustdb.Run, sources []*source.Source,
	past source.Past) ([]source.Reading, error) {
	validations, err := trustdb.ReadInput(ctx, k.db, run.Validations)
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
	if at.Time.IsZero() {
		reason = "the time of the epoch's last block is unknown"
	} else if k.ask != nil {
		reason = ""
		if readings, err = k.ask.Read(ctx, k.chain, at, sources, raters, past); err != nil {
			reason, readings = err.Error(), nil
		}
	}
	out := make([]source.Reading, len(sources))
	for i, s := range sources {
		one, fault := readingOf(s, raters, readings)
		if fault == "" {
			out[i] = one
			continue
		}
		if reason != "" {
			fault = reason
		}
		out[i] = unanswered(s, k.chain, at, raters, fault)
		if was := stateOf(past.States, s.ID); was != nil {
			out[i].Implementations = was.Implementations
		}
	}
	return out, nil
}

// unanswered is the reading of a source that said nothing of any rater.
func unanswered(s *source.Source, chain uint64, at repute.Block, raters []common.Address,
	reason string) source.Reading {
	return source.Reading{Unknown: raters, State: source.State{Source: s.ID, Chain: chain,
		Status: source.StatusIncomplete, Reason: reason, Block: at.Number, Hash: at.Hash,
		Time: uint64(max(0, at.Time.Unix()))}}
}

// readingOf picks the reading of a source. fault says why there is none to rely on: a reading that is missing, or that
// is about other sources or raters, MUST NOT count as "no".
func readingOf(s *source.Source, raters []common.Address, readings []source.Reading) (r source.Reading, fault string) {
	found := 0
	for i := range readings {
		if readings[i].Source == s.ID {
			r, found = readings[i], found+1
		}
	}
	if found != 1 {
		return r, fmt.Sprintf("the reader returned %d readings of the source", found)
	}
	for i := range r.Credentials {
		c := &r.Credentials[i]
		_, asked := slices.BinarySearchFunc(raters, c.Rater, common.Address.Cmp)
		if !asked || c.Source != s.ID || c.Version != s.Version {
			return r, fmt.Sprintf("the reader returned a credential of source %q for %s, which was not asked for",
				c.Source, c.Rater)
		}
	}
	return r, ""
}

// stateOf is that of one source, nil where there is none.
func stateOf(states []source.State, id string) *source.State {
	at := slices.IndexFunc(states, func(s source.State) bool { return s.Source == id })
	if at < 0 {
		return nil
	}
	return &states[at]
}

// lastReadings are the credentials that the last run used, and how the readings of its sources went. The credentials
// are empty where they are not stored any more. Implementations that were pinned when they were seen first are those
// of the newest run that names them, even if later runs read no source.
func (k *keeper) lastReadings(ctx context.Context, last trustdb.Run) (held []source.Credential, states []source.State,
	err error) {
	if last.Readings != "" {
		if err := json.Unmarshal([]byte(last.Readings), &states); err != nil {
			return nil, nil, fmt.Errorf("readings of sources of run %d: %w", last.Run, err)
		}
	}
	if states, err = k.addPins(ctx, states); err != nil || last.Credentials == (common.Hash{}) {
		return nil, states, err
	}
	body, err := trustdb.ReadInput(ctx, k.db, last.Credentials)
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

// addPins gives states the implementations that were pinned, also those of sources that the last run did not read.
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
		at := slices.IndexFunc(states, func(s source.State) bool { return s.Source == pin.Source && s.Chain == pin.Chain })
		switch {
		case at < 0:
			states = append(states, pin)
		case len(states[at].Implementations) == 0:
			states[at].Implementations = pin.Implementations
		}
	}
	return states, nil
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

// toFifty is what credentials cost that lift a new agent to 50: as much evidence as the prior has, and the highest
// opinion. It is nil where no source is read.
func (k *keeper) toFifty(ctx context.Context, sources common.Hash, p *trust.Params) (*repute.LiftPrice, error) {
	policy, err := k.policyOf(ctx, sources)
	if err != nil || policy == nil {
		return nil, err
	}
	lift := policy.LiftPrice(k.sourcesOn(policy), p.Evidence.Base)
	return &repute.LiftPrice{Cents: int64(lift.Dollars.Scaled(100, 1) / fixed.One), OutOfReach: lift.OutOfReach,
		Units: int64(lift.Units.Scaled(1000, 1) / fixed.One), Priced: lift.Priced, Unpriced: lift.Unpriced}, nil
}
