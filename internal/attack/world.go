// Package attack measures what it takes to move a score: it injects attacks into
// graphs of ratings, generated or recorded, and asks the trust engine and the formulas
// of other scorers about the same victims and beneficiaries. docs/explanation/trust.md
// publishes the figures, under the same names: T1 to T22, S1 to S6 and G1 to G8.
//
// A World is parties who rate each other: Population generates one from a seed, Load reads
// recorded ratings with labels of who is good. An Engine asks the functions of package trust
// about the parties of a world, without a database. A Bench runs attacks: each method adds the
// ratings of one attack to a copy of the world and returns what they reached, an Outcome for
// praise and a Drop for slander. Attackers are new identities or parties that a seed chooses, so
// that equal seeds give equal figures.
//
// Sources are credentials that attackers buy or are given, by the policy that is shipped.
// Marginals generate the population of a public chain from what is published of its raters, and
// Cover says how many of its agents get a score. Bounds, SourceBounds, Digest and SourcedDigest
// try rules that must always hold on random cases. Whitewash and its GuardCases measure who
// answers for a bad agent. Detect measures how well scores tell bad parties from good ones.
//
// Nothing here decides anything in the product: it calls the functions that the product uses.
package attack

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/rating"
)

// Rating is one party's opinion of another, -1 to 1.
type Rating struct {
	From, To int
	Value    float64
	Time     int64 // Unix seconds
}

// World is a set of parties who rate each other. Parties are numbered; each is an agent,
// and a client with the same address.
type World struct {
	Name    string
	Ratings []Rating
	Roots   []int
	// Good and Bad are the parties whose nature is known.
	Good, Bad map[int]bool
	Now       int64 // as of when parties are scored, in Unix seconds
}

// Next is a number that no party has yet, and no party with a greater one: attackers count on from it.
func (w *World) Next() int {
	most := 0
	for _, r := range w.Ratings {
		most = max(most, r.From, r.To)
	}
	return most + 1
}

// With is the world with more ratings; w does not change. Its roots are the same, also where the ratings would make
// others early.
func (w *World) With(more ...Rating) *World {
	out := *w
	out.Ratings = append(slices.Clip(slices.Clone(w.Ratings)), more...)
	return &out
}

// Load reads a file of source,target,rating -10 to 10,time, with or without a header,
// and one of node,label with 1 for good and -1 for bad. Lines with another number of fields are left out.
// The error wraps fs.ErrNotExist where a file is missing, and names the line that cannot be read. Now is
// the time of the newest rating. The first file MUST have a rating.
func Load(ratings, labels string) (*World, error) {
	w := &World{Name: "alpha", Good: map[int]bool{}, Bad: map[int]bool{}}
	err := eachLine(ratings, 4, func(f []string) error {
		from, err1 := strconv.Atoi(f[0])
		to, err2 := strconv.Atoi(f[1])
		value, err3 := strconv.ParseFloat(f[2], 64)
		at, err4 := strconv.ParseFloat(f[3], 64)
		err := errors.Join(err1, err2, err3, err4)
		if err == nil {
			w.Ratings = append(w.Ratings, Rating{from, to, value / 10, int64(at)})
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	err = eachLine(labels, 2, func(f []string) error {
		node, err := strconv.Atoi(f[0])
		if err == nil {
			map[bool]map[int]bool{true: w.Bad, false: w.Good}[strings.HasPrefix(f[1], "-")][node] = true
		}
		return err
	})
	w.Now = slices.MaxFunc(w.Ratings, func(a, b Rating) int { return cmp.Compare(a.Time, b.Time) }).Time
	return w, err
}

// eachLine reads the fields of each line of a file; a first line of words is a header.
func eachLine(path string, fields int, use func([]string) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	scan := bufio.NewScanner(f)
	for n := 1; scan.Scan(); n++ {
		line := strings.Split(strings.TrimSpace(scan.Text()), ",")
		if len(line) != fields {
			continue
		}
		if err := use(line); err != nil && n > 1 {
			return fmt.Errorf("%s line %d: %w", path, n, err)
		}
	}
	return scan.Err()
}

// EarlyRoots are the n parties that most others had praised when the first tenth of the
// ratings was given: a choice that knows nothing of who is good. There are fewer where fewer
// were praised. Of equals the lower number comes first.
func EarlyRoots(ratings []Rating, n int) []int {
	early := slices.Clone(ratings)
	slices.SortStableFunc(early, func(a, b Rating) int { return cmp.Compare(a.Time, b.Time) })
	praised := map[int]map[int]bool{}
	for _, r := range early[:len(early)/10] {
		if r.Value > 0 {
			if praised[r.To] == nil {
				praised[r.To] = map[int]bool{}
			}
			praised[r.To][r.From] = true
		}
	}
	parties := slices.SortedFunc(maps.Keys(praised), func(a, b int) int {
		return cmp.Or(cmp.Compare(len(praised[b]), len(praised[a])), cmp.Compare(a, b))
	})
	return parties[:min(n, len(parties))]
}

// Population makes a world of parties that hire each other within communities, a few of
// them bad, from a seed.
func Population(parties, roots int, seed uint64) *World {
	rng := rand.New(rand.NewPCG(seed, 8004))
	w := &World{Name: "population", Good: map[int]bool{}, Bad: map[int]bool{}, Now: 1_800_000_000}
	const community = 200
	for p := range parties {
		w.Good[p] = rng.Float64() >= 0.08
		if !w.Good[p] {
			delete(w.Good, p)
			w.Bad[p] = true
		}
	}
	for p := range parties {
		seen := map[int]bool{p: true}
		for range 4 + int(rng.ExpFloat64()*10) {
			to := p/community*community + int(float64(community)*math.Pow(rng.Float64(), 2))
			if rng.Float64() < 0.15 {
				to = int(float64(parties) * math.Pow(rng.Float64(), 2))
			}
			if to >= parties || seen[to] {
				continue
			}
			seen[to] = true
			w.Ratings = append(w.Ratings, Rating{p, to, w.opinion(rng, p, to), w.Now - rng.Int64N(60*24*3600)})
		}
	}
	w.Roots = EarlyRoots(w.Ratings, roots)
	return w
}

// opinion is honest for good parties; bad ones praise each other and nobody else.
func (w *World) opinion(rng *rand.Rand, from, to int) float64 {
	good := w.Good[to]
	if w.Bad[from] {
		good = w.Bad[to]
	}
	if good {
		return 0.6 + 0.4*rng.Float64()
	}
	return -0.2 - 0.8*rng.Float64()
}

// Bend is the world with opinions |v|^power of the same sign: some communities use only
// the lowest part of a scale.
func (w *World) Bend(power float64) *World {
	out := *w
	out.Ratings = slices.Clone(w.Ratings)
	for i, r := range out.Ratings {
		out.Ratings[i].Value = math.Copysign(math.Pow(math.Abs(r.Value), power), r.Value)
	}
	return &out
}

// Engine asks the trust engine about a world. It is made for one set of ratings: a world with more needs another one.
type Engine struct {
	w       *World
	p       *rating.Params
	weights *flow.Weights
	scorer  *trust.Scorer
	about   map[int][]int // ratings by whom they are about
}

// NewEngine builds the graph of who praised whom and walks it from the roots. Both parties of a link are
// known to be one.
func NewEngine(w *World, p *rating.Params, links ...[2]int) *Engine {
	e := &Engine{w: w, p: p, about: map[int][]int{}}
	b := flow.NewGraphBuilder()
	for i, r := range w.Ratings {
		e.about[r.To] = append(e.about[r.To], i)
		from, to := b.Add(Address(r.From)), b.Add(Address(r.To))
		if r.Value > 0 {
			b.Vouch(from, to, p.Walk.Edge(FixedOf(r.Value), fixed.One))
		}
	}
	for _, r := range w.Roots {
		b.Add(Address(r))
	}
	for _, l := range links {
		b.Link(b.Add(Address(l[0])), b.Add(Address(l[1])))
	}
	e.weights = b.Build().Walk(e.roots(), p.Walk)
	e.scorer = trust.NewScorer(e.weights, p)
	return e
}

// roots are those of the world, each of full weight.
func (e *Engine) roots() (roots []flow.Root) {
	for _, r := range e.w.Roots {
		roots = append(roots, flow.Root{Address: Address(r), Weight: fixed.One})
	}
	return roots
}

// Address is a party's. That of party 0 is not the zero address, which is nobody's.
func Address(party int) (a common.Address) {
	binary.BigEndian.PutUint64(a[12:], uint64(party)+1)
	return a
}

// FixedOf rounds a value of a scenario to the nearest Fixed.
func FixedOf(v float64) fixed.Fixed { return fixed.Fixed(math.Round(v * float64(fixed.One))) }

// Score is the engine's result for a party.
func (e *Engine) Score(party int) trust.Result { return e.scorer.Score(e.Evidence(party)) }

// Evidence is what the engine gets to know of a party.
func (e *Engine) Evidence(party int) trust.Evidence {
	ev := trust.Evidence{
		Agent: repute.AgentID{ChainID: 1}, Owner: Address(party), Weights: e.weights, Block: blockAt(e.w.Now),
	}
	for _, i := range e.about[party] {
		ev.Rows = append(ev.Rows, RowOf(i, e.w.Ratings[i]))
	}
	return ev
}

// blockAt is the block as of which parties are scored: after all ratings, at a time.
func blockAt(now int64) repute.Block { return repute.Block{Number: 1 << 40, Time: time.Unix(now, 0)} }

// RowOf puts rating number i into the terms of a chain: 0 to 100 in millionths, in a
// block of its own.
func RowOf(i int, r Rating) rating.Row {
	return rating.Row{Block: uint64(i), Time: r.Time, Rater: Address(r.From), Index: 1, Tag1: "quality",
		Amount: repute.Amount{Value: big.NewInt(int64(math.Round((r.Value*50 + 50) * 1e6))), Decimals: 6}}
}

// Weight is a party's weight as a rater, 0 to 1.
func (e *Engine) Weight(party int) float64 {
	_, weight := e.weights.Rater(Address(party))
	return float64(weight) / float64(fixed.One)
}
