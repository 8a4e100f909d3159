package trust_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/trust"
	"repute/trust/fixed"
	"repute/trust/flow"
	"repute/trust/graph"
	"repute/trust/rating"
)

// The program in the documentation, which was written from the page beside it, finds the same scores.
func TestIndependentImplementation(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	rated, against, sourced := 0, 0, 0
	for seed := range uint64(6) {
		w := newOtherWorld(t, seed)
		got := w.run(t, python)
		for i, want := range w.scores(t) {
			g := got[i]
			for what, pair := range map[string][2]float64{"score": {g.Score, float64(want.Score) / 1000},
				"mean": {g.Mean, float64(want.Mean) / 1000}, "low": {g.Low, float64(want.Low) / 1000},
				"high":     {g.High, float64(want.High) / 1000},
				"evidence": {g.Evidence, float64(want.Evidence) / float64(fixed.One)},
				"paths":    {math.Floor(g.FlowFor + 1.0/(1<<16)), float64(want.PathsFor)}} {
				if what == "paths" && pair[1] >= 3 { // more is measured only where it matters
					continue
				}
				if math.Abs(pair[0]-pair[1]) > 0.01 {
					t.Errorf("seed %d, agent %d: %s is %.4f, the engine's is %.4f", seed, i, what, pair[0], pair[1])
				}
			}
			if g.Status != want.Status {
				t.Errorf("seed %d, agent %d: %s, the engine says %s", seed, i, g.Status, want.Status)
			}
			if want.Status == trust.Rated {
				rated++
			}
			if want.Sourced != nil {
				sourced++
			}
			if want.Mean < 0 {
				against++
			}
		}
	}
	if rated < 50 || against < 20 || sourced < 50 {
		t.Errorf("%d rated and %d bad agents, %d by sources: the test shows less than it should", rated, against,
			sourced)
	}
}

// otherWorld is a random world in the words of the program.
type otherWorld struct {
	Params json.RawMessage `json:"params"`
	Tags   json.RawMessage `json:"tags"`
	Now    int64           `json:"now"`
	Roots  []otherRoot     `json:"roots"`
	// Credits are what sources give, by rules of two classes.
	Credits otherCredits `json:"credits"`
	Agents  []otherAgent `json:"agents"`
}

type otherRoot struct {
	Address common.Address `json:"address"`
	Weight  float64        `json:"weight"`
}

type otherCredits struct {
	Agents  int           `json:"agents"`
	Days    int           `json:"days"`
	All     otherBounds   `json:"all"`
	Classes []otherClass  `json:"classes"`
	Sources []otherSource `json:"sources"`
	Raters  []otherCredit `json:"raters"`
}

type otherBounds struct {
	Praise float64 `json:"praise"`
	Blame  float64 `json:"blame"`
}

type otherClass struct {
	Rater float64 `json:"rater"`
	otherBounds
}

type otherSource struct {
	Class int `json:"class"`
	otherBounds
}

type otherCredit struct {
	Rater   common.Address `json:"rater"`
	Source  int            `json:"source"`
	Subject common.Hash    `json:"subject"`
	Weight  float64        `json:"weight"`
}

type otherAgent struct {
	Owner common.Address `json:"owner"`
	Rows  []otherRow     `json:"rows"`
}

type otherRow struct {
	Rater      common.Address `json:"rater"`
	Value      string         `json:"value"`
	Tag1       string         `json:"tag1"`
	Tag2       string         `json:"tag2"`
	Time       int64          `json:"time"`
	Block      uint64         `json:"block"`
	Log        uint32         `json:"log"`
	Content    common.Hash    `json:"content"`
	Paid       float64        `json:"paid"`
	Validation bool           `json:"validation"`
}

// otherResult is what the program says of an agent.
type otherResult struct {
	Status                                                 trust.Status
	Score, Mean, Low, High, Evidence, FlowFor, FlowAgainst float64
}

func newOtherWorld(t *testing.T, seed uint64) *otherWorld {
	t.Helper()
	read := func(name string) json.RawMessage {
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	const parties, now, day = 60, 1_800_000_000, 24 * 60 * 60
	rng := rand.New(rand.NewPCG(seed, 4))
	w := &otherWorld{Params: read("rating/params.json"), Tags: read("rating/tags.json"), Now: now}
	party := func(n int) common.Address { return common.BigToAddress(big.NewInt(int64(n + 1))) }
	for i := range 8 + rng.IntN(8) {
		w.Roots = append(w.Roots, otherRoot{party(i), []float64{1, 1, 1, 0.5, 3}[rng.IntN(5)]})
	}
	tags := []string{"starred", "quality", "successRate", "uptime", "unheard"}
	log := uint32(0)
	for agent := range parties {
		a := otherAgent{Owner: party(agent), Rows: []otherRow{}}
		bad := agent%5 == 4
		for range rng.IntN(25) {
			log++
			value := 50 + rng.IntN(51)
			if bad {
				value = rng.IntN(40)
			}
			rater := rng.IntN(parties + 20)
			if rater%7 == 3 { // these give stars, or write parts of ten
				value = max(1, value/20)
			}
			r := otherRow{Rater: party(rater), Value: fmt.Sprint(value), Tag1: tags[rng.IntN(len(tags))],
				Time: now - rng.Int64N(300*day), Block: uint64(log), Log: log}
			switch rng.IntN(10) {
			case 0:
				r.Validation, r.Tag1 = true, []string{"hard_finality", "other"}[rng.IntN(2)]
			case 1:
				r.Paid = float64(rng.IntN(200))
			case 2, 3: // the words of the one before, in its block
				if n := len(a.Rows); n > 0 && !a.Rows[n-1].Validation {
					rater := r.Rater
					r = a.Rows[n-1]
					r.Rater, r.Log, r.Paid = rater, log, 0
				}
			}
			a.Rows = append(a.Rows, r)
		}
		w.Agents = append(w.Agents, a)
	}
	w.Credits = otherCredits{Agents: 4, Days: 90, All: otherBounds{3, 1.5}, Raters: []otherCredit{},
		Classes: []otherClass{{1, otherBounds{2.5, 1.25}}, {0.25, otherBounds{0.5, 0.25}}},
		Sources: []otherSource{{0, otherBounds{1.5, 1}}, {0, otherBounds{1.5, 1}}, {1, otherBounds{0.5, 0.25}}}}
	for i := range parties + 20 {
		for source := range w.Credits.Sources {
			if seed%2 == 1 && rng.IntN(4) == 0 {
				subject := common.BigToHash(big.NewInt(int64(source*1000 + i/(1+rng.IntN(3))))) // some are one person
				w.Credits.Raters = append(w.Credits.Raters,
					otherCredit{party(i), source, subject, []float64{0.5, 0.25}[source/2]})
			}
		}
	}
	return w
}

// credits are those of the world in the engine's terms.
func (w *otherWorld) credits() *graph.Credits {
	exact := func(v float64) fixed.Fixed { return fixed.Ratio(int64(v*100), 100) }
	bounds := func(b otherBounds) flow.SourceBounds {
		return flow.SourceBounds{Praise: exact(b.Praise), Blame: exact(b.Blame)}
	}
	out := &graph.Credits{Agents: w.Credits.Agents, Days: w.Credits.Days,
		Rules: flow.SourceRules{All: bounds(w.Credits.All)}}
	for i, c := range w.Credits.Classes {
		out.Rules.Classes = append(out.Rules.Classes, flow.SourceClass{ID: fmt.Sprint(i), Rater: exact(c.Rater),
			SourceBounds: bounds(c.otherBounds)})
	}
	for i, s := range w.Credits.Sources {
		out.Rules.Sources = append(out.Rules.Sources, flow.Source{ID: fmt.Sprint(i), Class: s.Class,
			SourceBounds: bounds(s.otherBounds)})
	}
	for _, c := range w.Credits.Raters {
		out.Raters = append(out.Raters, graph.RaterCredit{Rater: c.Rater, Source: c.Source, Subject: c.Subject,
			Weight: exact(c.Weight)})
	}
	return out
}

// run asks the program.
func (w *otherWorld) run(t *testing.T, python string) (out []otherResult) {
	t.Helper()
	raw, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "../docs/explanation/trust.py")
	var said bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(raw), &said
	answer, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, said.String())
	}
	if err := json.Unmarshal(answer, &out); err != nil || len(out) != len(w.Agents) {
		t.Fatalf("%d answers: %v", len(out), err)
	}
	return out
}

// scores are what the engine says.
func (w *otherWorld) scores(t *testing.T) (out []trust.Result) {
	t.Helper()
	p, err := rating.ParseParams(w.Params, w.Tags)
	if err != nil {
		t.Fatal(err)
	}
	var roots []flow.Root
	for _, r := range w.Roots {
		roots = append(roots, flow.Root{Address: r.Address, Weight: fixed.Ratio(int64(r.Weight*2), 2)})
	}
	at := repute.Block{Number: 1 << 40, Time: time.Unix(w.Now, 0)}
	reader := graph.NewReader(at, roots, nil, p)
	for i, a := range w.Agents {
		reader.Agent(tokenOf(i), 0, a.Owner, common.Address{})
		for j := range a.Rows {
			reader.Rating(tokenOf(i), a.Rows[j].row())
		}
	}
	weights := reader.Build().Walk(roots, p.Walk)
	weights = reader.Credited(weights, w.credits())
	scales := reader.Scales()
	for i, a := range w.Agents {
		e := trust.Evidence{Agent: repute.AgentID{ChainID: 1, TokenID: tokenOf(i)}, Block: at, Owner: a.Owner,
			Weights: weights, Scales: scales}
		for j := range a.Rows {
			e.Rows = append(e.Rows, a.Rows[j].row())
		}
		out = append(out, trust.Score(e, p))
	}
	return out
}

func tokenOf(i int) (id repute.TokenID) {
	id.SetUint64(uint64(i))
	return id
}

func (r *otherRow) row() rating.Row {
	value, _ := new(big.Int).SetString(r.Value, 10)
	return rating.Row{Block: r.Block, LogIndex: r.Log, Time: r.Time, Rater: r.Rater, Index: uint64(r.Log),
		Validation: r.Validation, Amount: repute.Amount{Value: value}, Tag1: r.Tag1, Tag2: r.Tag2, Content: r.Content,
		Paid: fixed.Int(int(r.Paid))}
}
