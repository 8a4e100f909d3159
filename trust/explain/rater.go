package explain

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/scoredb"
	"repute/store/trustdb"
	"repute/trust/engine"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
	"repute/trust/rows"
)

// Rater is what an address weighs on a chain as of its newest epoch, and why.
type Rater struct {
	Run scoredb.Run
	// Identity is the name of its identity in the graph, and Members are the other addresses of it, at most maxMembers.
	Identity common.Address
	Members  []common.Address
	// Weight comes by trust from the roots, and Granted in addition to it by sources, each 0 to 1.
	Weight, Granted fixed.Fixed
	Root            bool
	// Path leads from a root to the identity, the root first; nil when no root vouches for it.
	Path []common.Address
	// Sources are the ids of the sources that give it weight.
	Sources []string
	// Read is how many of its newest live ratings were looked at, at most maxRead. Counted are those that a score
	// reads, and ByReason counts the others. Praise from before an agent's owner got it is not told apart: that takes
	// the history of each agent.
	Read, Counted int
	ByReason      map[rating.Reason]int
}

const (
	// maxMembers is how many addresses of an identity are listed.
	maxMembers = 20
	// maxRead is how many ratings of a rater are looked at.
	maxRead = 1000
)

// Rater returns what an address weighs. admit is called before a graph is read that nobody has in memory.
// repute.ErrNotFound when no engine has run on the chain. A *replay.PrunedError when an input of the run is gone.
func (r *Reader) Rater(ctx context.Context, chainID uint64, a common.Address,
	admit func() error) (out Rater, err error) {
	run, err := scoredb.ReadRun(ctx, r.db, chainID, 0)
	if err != nil {
		return out, err
	}
	_, kept := r.worlds.Peek(worldKey{chain: chainID, run: run.Run})
	if !kept && r.graphs.Get(chainID, run.Run) == nil {
		if err := admit(); err != nil {
			return out, err
		}
	}
	world, err := r.worldFor(ctx, run)
	if err != nil {
		return out, err
	}
	out = weigh(world, a)
	ratings, err := trustdb.ClientRatings(ctx, r.db, chainID, a, maxRead)
	if err != nil {
		return out, err
	}
	out.count(world, ratings)
	return out, nil
}

// weigh returns what the graph of a run says of an address.
func weigh(world *engine.Basis, a common.Address) Rater {
	w, g := world.Weights, world.Weights.Graph()
	n := g.Node(a)
	out := Rater{Run: world.Run, Identity: g.Identity(a), Weight: w.Weight(n), Granted: w.Granted(n), Root: w.IsRoot(n),
		Path: w.Path(n), ByReason: map[rating.Reason]int{}}
	for _, m := range g.Members(a) {
		if m != a && len(out.Members) < maxMembers {
			out.Members = append(out.Members, m)
		}
	}
	if n != flow.NoNode && out.Granted > 0 {
		for _, c := range w.Credits(n) {
			out.Sources = append(out.Sources, w.SourceRules().Sources[c.Source].ID)
		}
	}
	return out
}

// count reads ratings as scores of the run do.
func (out *Rater) count(world *engine.Basis, ratings []trustdb.ClientRating) {
	g := world.Weights.Graph()
	at := world.Run.Block.Time.Unix()
	for _, r := range ratings {
		row := rows.RowOf(r.Row)
		at = max(at, row.Time) // newer than the run: scores at the newest block read it
		_, reason := world.Params.Read(&row, at, world.Scales)
		if reason == "" && g.Identity(row.Rater) == g.Identity(r.Owner) {
			reason = rating.ReasonSelf
		}
		out.Read++
		if reason == "" {
			out.Counted++
		} else {
			out.ByReason[reason]++
		}
	}
}

// Raters returns what an address weighs on each of the chains. Chains of which nothing is known are left out: no engine
// has run, or an input of its run is gone.
func (r *Reader) Raters(ctx context.Context, chains []uint64, a common.Address, admit func() error) (map[uint64]Rater,
	error) {
	out := map[uint64]Rater{}
	for _, id := range chains {
		rater, err := r.Rater(ctx, id, a, admit)
		if errors.Is(err, repute.ErrNotFound) || errors.Is(err, repute.ErrGone) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[id] = rater
	}
	return out, nil
}

// TagMeaning is what the table of tags says of a tag1.
type TagMeaning struct {
	Unit, Channel, Reason string
	Better                rating.Better
	Use                   rating.Use
	// Weight is what a rating with the tag weighs, 0 to 1, and Range the least and the largest value that is read; nil
	// where the table names none.
	Weight fixed.Fixed
	Range  []fixed.Fixed
}

// Meaning returns what the table of tags says of a tag1, nil when it does not know the tag.
func (r *Reader) Meaning(tag string) *TagMeaning {
	rule := r.params.Tags.Rule(tag)
	if rule == nil {
		return nil
	}
	return &TagMeaning{Unit: rule.Unit, Channel: rule.Channel, Reason: rule.Reason, Better: rule.Better,
		Use: r.params.Tags.UseOf(rule), Weight: rule.Weight, Range: rule.Range}
}

// ScoredTags returns the tags that scores read with the values that they read, ordered by tag.
func (r *Reader) ScoredTags() (tags []string, bounds map[string][]fixed.Fixed) {
	bounds = map[string][]fixed.Fixed{}
	for i := range r.params.Tags.Tags {
		rule := &r.params.Tags.Tags[i]
		if r.params.Tags.UseOf(rule) != rating.UseScore || rule.Weight == 0 || len(rule.Range) == 0 {
			continue
		}
		for _, tag := range rule.Tags {
			tags, bounds[tag] = append(tags, tag), rule.Range
		}
	}
	slices.SortFunc(tags, strings.Compare)
	return tags, bounds
}
