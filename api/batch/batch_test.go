package batch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
	"repute/api/wire"
)

// drawAgent draws an agent of a comparison.
func drawAgent(t *rapid.T, id int) ComparedAgent {
	few := func(name string) int { return rapid.IntRange(0, 2).Draw(t, name) }
	a := ComparedAgent{Agent: wire.ID(fmt.Sprint("agent", id)), ShortID: wire.ID(fmt.Sprint("8453:", id)),
		Reviewers: wire.Long(few("reviewers")), Ratings: wire.Long(few("ratings"))}
	a.Status = rapid.SampledFrom([]string{"rated", "thin", "unrated"}).Draw(t, "status")
	a.Score, a.Tier = float64(10*few("score")), int32(few("tier"))
	spread := float64(5 * few("spread"))
	a.Low, a.High = a.Score-spread, a.Score+spread
	for _, name := range []string{"service", "payment"}[:few("lacks")] {
		a.Lacks = append(a.Lacks, wire.Gate{ID: name})
	}
	for range few("kept out") {
		a.KeptOut = append(a.KeptOut, "reject")
	}
	for i := range few("tags") {
		tag := wire.TagSummary{Tag: fmt.Sprint("tag", i), Count: 1}
		tag.Median.Decimal = wire.Decimal(fmt.Sprint(few("median")))
		a.Tags = append(a.Tags, tag)
	}
	for range few("services") {
		name := rapid.SampledFrom([]string{"MCP", "A2A", ""}).Draw(t, "name")
		a.Services = append(a.Services, wire.AgentService{Name: name})
	}
	for range few("prices") {
		p := IntentCost{Intent: "translate"}
		if text := rapid.SampledFrom([]string{"", "0", "0.50", "0.5", "12", "x"}).Draw(t, "price"); text != "" {
			p.Price = new(wire.Decimal(text))
		}
		a.Prices = append(a.Prices, p)
	}
	return a
}

// TestDifferences: whatever agents are compared, what sets them apart names agents of the comparison, the best one is
// strictly better than all others in it, and agents that are alike have no difference.
func TestDifferences(t *testing.T) {
	t.Parallel()
	better := map[string]func(a ComparedAgent) float64{
		"score":   func(a ComparedAgent) float64 { return a.Score },
		"tier":    func(a ComparedAgent) float64 { return float64(a.Tier) },
		"ratings": func(a ComparedAgent) float64 { return float64(a.Reviewers) },
		"gates":   func(a ComparedAgent) float64 { return float64(-len(a.Lacks) - 100*len(a.KeptOut)) }}
	rapid.Check(t, func(t *rapid.T) {
		agents := make([]ComparedAgent, rapid.IntRange(leastCompared, mostCompared).Draw(t, "agents"))
		for i := range agents {
			agents[i] = drawAgent(t, i)
		}
		for _, d := range differences(agents) {
			if d.Sentence == "" || !slices.ContainsFunc(agents, func(a ComparedAgent) bool {
				return strings.Contains(d.Sentence, string(a.ShortID))
			}) {
				t.Fatalf("%+v names nobody", d)
			}
			checkBest(t, d, agents, better[d.What])
		}
		alike := make([]ComparedAgent, len(agents))
		for i := range alike {
			alike[i] = agents[0]
			alike[i].Agent, alike[i].ShortID = agents[i].Agent, agents[i].ShortID
		}
		if found := differences(alike); len(found) > 0 {
			t.Fatalf("agents that are alike differ: %+v", found)
		}
	})
}

// checkBest checks the agent that is best in a difference.
func checkBest(t *rapid.T, d Difference, agents []ComparedAgent, by func(ComparedAgent) float64) {
	if d.Best == nil {
		return
	}
	at := slices.IndexFunc(agents, func(a ComparedAgent) bool { return a.Agent == *d.Best })
	if at < 0 || d.What == "status" || d.What == "tag" || d.What == "services" {
		t.Fatalf("%+v has a best agent", d)
	}
	for i, a := range agents {
		if by == nil || i == at || d.What == "score" && a.Status == string(repute.Unrated) {
			continue
		}
		if by(a) >= by(agents[at]) {
			t.Fatalf("%+v, but %s is as good", d, a.ShortID)
		}
	}
}

// TestItems: a batch has an item for each item of its request. One that is no name of agents has an error of its own,
// which says what an item may be, and the others are read.
func TestItems(t *testing.T) {
	t.Parallel()
	for text, wrong := range map[string]bool{`"8453:22"`: false, `{"agent":"8453:22"}`: false,
		`{"wallet":"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"}`: false, `{"domain":"Shop.example."}`: false,
		`""`: true, `{}`: true, `null`: true, `7`: true, `[]`: true, `{"agent":7}`: true, `{"other":"x"}`: true,
		`{"agent":"8453:22","domain":"shop.example"}`: true, `{"domain":"https://shop.example"}`: true,
		`{"wallet":"0x1"}`: true,
		`{"domain":"a b"}`: true, `{"domain":"` + strings.Repeat("a", 300) + `"}`: true, `"8453"`: false, `"x:y"`: true} {
		r, err := ParseRequest([]byte(`{"agents":["8453:1",` + text + `,"8453:2"]}`))
		if err != nil || len(r.Agents) != 3 {
			t.Errorf("%s: %d items, %v", text, len(r.Agents), err)
			continue
		}
		for i, a := range r.Agents {
			item := a.parse()
			named := 0
			for _, is := range []bool{item.ID != nil, item.Address != nil, item.Domain != ""} {
				if is {
					named++
				}
			}
			if isWrong := wrong && i == 1; (item.Err != nil) != isWrong || isWrong && !errors.Is(item.Err, repute.ErrInvalid) ||
				(named == 1) == isWrong {
				t.Errorf("%s: item %d is %+v", text, i, item)
			}
		}
	}
}

// TestRequests: a body that is no batch is refused as a whole.
func TestRequests(t *testing.T) {
	t.Parallel()
	many, err := json.Marshal(map[string]any{"agents": slices.Repeat([]string{"8453:22"}, MaxItems+1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"", "{", "[]", `"8453:22"`, "{}", `{"agents":[]}`, `{"agents":{}}`, `{"agents":null}`,
		`{"agents":["8453:22"],"more":1}`, `{"agents":["a\u0000"]}`, string(many)} {
		if _, err := ParseRequest([]byte(body)); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%.60s: %v", body, err)
		}
	}
}

// FuzzRequest: whatever is posted is refused, or has items each of which is parsed to one name or to an error.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"agents":["8453:22",{"wallet":"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432"},{"domain":"ä.example"}]}`))
	f.Add([]byte(`{"agents":[{"agent":"1"},{"agent":1},null]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := ParseRequest(body)
		if err != nil {
			if !errors.Is(err, repute.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		for _, a := range r.Agents {
			if item := a.parse(); item.Err == nil && item.ID == nil && item.Address == nil && item.Domain == "" {
				t.Errorf("%+v names nothing", a)
			}
		}
	})
}
