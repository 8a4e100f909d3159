package subgraph_test

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"repute"
)

// happening is an event that series count.
type happening struct {
	kind  int
	agent string
	block repute.Block
	value *big.Rat // of a rating
}

const (
	agentRegistered = iota
	agentRated
	ratingRevoked
)

// sums returns the fields of an entity that an event is added to, and what is added.
func (h happening) sums(entity string) map[string]*big.Rat {
	switch {
	case entity == "ProtocolAgentStats" && h.kind == agentRegistered:
		return map[string]*big.Rat{"agentRegistrations": number(1)}
	case entity != "ProtocolAgentStats" && h.kind == agentRated:
		return map[string]*big.Rat{"feedbackCreated": number(1), "feedbackRevoked": number(0), "valueSum": h.value,
			"valueDeltaSum": h.value}
	case entity != "ProtocolAgentStats" && h.kind == ratingRevoked:
		return map[string]*big.Rat{"feedbackCreated": number(0), "feedbackRevoked": number(1), "valueSum": number(0),
			"valueDeltaSum": new(big.Rat).Neg(h.value)}
	}
	return nil
}

// series returns the rows of an entity by intervals of seconds, without the interval of the newest block unless current
// is set: each event is added to the interval in which it happened and to all later ones.
func (m *model) series(entity string, seconds int64, current bool) []row {
	rows := map[string]row{}
	start := func(b repute.Block) int64 { return b.Time.Unix() / seconds * seconds }
	key := func(h happening) string {
		if strings.HasPrefix(entity, "Agent") {
			return h.agent
		}
		return ""
	}
	for _, h := range m.happened {
		at := fmt.Sprint(key(h), start(h.block))
		if h.sums(entity) == nil || rows[at] != nil || !current && start(h.block) == start(m.tip) {
			continue
		}
		rows[at] = row{"id": number(int64(h.block.Number) * 1_000_000), "timestamp": number(start(h.block) * 1_000_000)}
		if key(h) != "" {
			rows[at]["agent"] = h.agent
		}
		for _, other := range m.happened {
			if key(other) == key(h) && start(other.block) <= start(h.block) {
				for name, value := range other.sums(entity) {
					sum, _ := rows[at][name].(*big.Rat)
					if sum == nil {
						sum = new(big.Rat)
					}
					rows[at][name] = new(big.Rat).Add(sum, value)
				}
			}
		}
	}
	return slices.Collect(maps.Values(rows))
}

// TestRandomSeries compares pages of random filters and orders of sums by hour and day with those of the model.
func TestRandomSeries(t *testing.T) {
	t.Parallel()
	type world struct {
		*model
		*server
	}
	var worlds []world
	for seed := range int64(2) {
		l := newLedger(t)
		l.pause = 1700
		worlds = append(worlds, world{randomWorld(l, seed), serve(t, l.db)})
	}
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SampledFrom(worlds).Draw(t, "world")
		entity := rapid.SampledFrom([]string{"AgentFeedbackStats", "AgentFeedbackStats", "ProtocolFeedbackStats",
			"ProtocolAgentStats"}).Draw(t, "entity")
		interval, current := rapid.SampledFrom([]string{"hour", "day"}).Draw(t, "interval"), rapid.Bool().Draw(t, "current")
		m := &model{rows: maps.Clone(w.rows), refs: maps.Clone(w.refs), back: w.back}
		m.rows[entity] = w.series(entity, map[string]int64{"hour": 3600, "day": 86400}[interval], current)
		slices.SortFunc(m.rows[entity], func(a, b row) int { return order(a["id"], b["id"]) })
		m.refs["AgentFeedbackStats.agent"] = "Agent"
		depth := 2
		if entity != "AgentFeedbackStats" {
			depth = 0 // it refers to nothing
		}
		filter := m.draw(t, entity, depth)
		names := m.fields(entity)
		by := rapid.SampledFrom(append(names, "timestamp", "timestamp")).Draw(t, "by")
		desc := rapid.Bool().Draw(t, "desc")
		first, skip := rapid.IntRange(1, 40).Draw(t, "first"), rapid.IntRange(0, 20).Draw(t, "skip")
		q := fmt.Sprintf(`query($w: %s_filter) { list: %s_collection(interval: %s, current: %s, where: $w, first: %d, skip: %d,
			orderBy: %s, orderDirection: %s) { %s } }`, entity, strings.ToLower(entity[:1])+entity[1:], interval,
			map[bool]string{true: "include", false: "exclude"}[current], first, skip, by,
			map[bool]string{true: "desc", false: "asc"}[desc],
			strings.ReplaceAll(strings.Join(names, " "), "agent ", "agent { id } "))
		type list struct{ List []map[string]any }
		got := answered[list](w.t, w.ask(q, map[string]any{"w": filter.json()})).List
		want := m.page(entity, filter, by, desc, first, skip)
		if len(got) != len(want) {
			t.Fatalf("%s %v: %d rows, not %d:\n%v\n%v", q, filter.json(), len(got), len(want), got, want)
		}
		for i := range want {
			for _, name := range names {
				value := got[i][name]
				if of, isAgent := value.(map[string]any); isAgent {
					value = of["id"]
				}
				if expected := asJSON(want[i][name]); value != expected {
					t.Fatalf("%s %v: %s of row %d is %v, not %v:\n%v", q, filter.json(), name, i, value, expected, got)
				}
			}
		}
	})
}
