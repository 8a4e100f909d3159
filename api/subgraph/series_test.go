package subgraph_test

import (
	"fmt"
	"maps"
	"math/big"
	"math/rand"
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
	value *big.Rat // of a rating or an answer
}

const (
	agentRegistered = iota
	agentRated
	ratingRevoked
	validationAsked
	validationAnswered
)

// sums returns the fields of an entity that an event is added to, and what is added.
func (h happening) sums(entity string) map[string]*big.Rat {
	rated, validated := strings.Contains(entity, "Feedback"), strings.Contains(entity, "Validation")
	switch {
	case entity == "ProtocolAgentStats" && h.kind == agentRegistered:
		return map[string]*big.Rat{"agentRegistrations": number(1)}
	case validated && h.kind == validationAsked:
		return map[string]*big.Rat{"validationRequests": number(1), "validationResponses": number(0),
			"scoreSum": number(0)}
	case validated && h.kind == validationAnswered:
		return map[string]*big.Rat{"validationRequests": number(0), "validationResponses": number(1),
			"scoreSum": h.value}
	case rated && h.kind == agentRated:
		return map[string]*big.Rat{"feedbackCreated": number(1), "feedbackRevoked": number(0), "valueSum": h.value,
			"valueDeltaSum": h.value}
	case rated && h.kind == ratingRevoked:
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

// validate asks for validations of random agents and answers most of them.
func (m *model) validate(l *ledger, r *rand.Rand) {
	for n := range 25 {
		a := m.rows["Agent"][r.Intn(len(m.rows["Agent"]))]
		id, key, hash := token(a["agentId"].(*big.Rat).Num().Uint64()), a["id"].(string), hashOf(uint64(n), 9)
		b := l.add(repute.ValidationRequest{Validator: addr(300), TokenID: id, RequestHash: hash})
		m.happened = append(m.happened, happening{validationAsked, key, b, nil})
		a["updatedAt"], a["lastActivity"] = number(b.Time.Unix()), number(b.Time.Unix())
		if r.Intn(4) == 0 {
			continue
		}
		score := uint8(r.Intn(101))
		b = l.add(repute.ValidationResponse{Validator: addr(300), TokenID: id, RequestHash: hash, Response: score})
		m.happened = append(m.happened, happening{validationAnswered, key, b, number(int64(score))})
		a["updatedAt"], a["lastActivity"] = number(b.Time.Unix()), number(b.Time.Unix())
	}
	m.tip = l.tip
}

// changedSince returns the rows of an interval that readers up to the block before another one have not seen as they
// are after it: those that were not over at that block.
func (m *model) changedSince(rows []row, block uint64, seconds int64) []row {
	begins := new(big.Rat)
	if block > 1 {
		begins = number((secondsOf(block-1) + seriesPause*int64(block-1)) / seconds * seconds * 1_000_000)
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return r["timestamp"].(*big.Rat).Cmp(begins) < 0 })
}

// seriesPause is how many seconds are between the blocks of a series, besides those of secondsOf.
const seriesPause = 1700

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
		l.pause = seriesPause
		m := randomWorld(l, seed)
		m.validate(l, rand.New(rand.NewSource(seed)))
		worlds = append(worlds, world{m, serve(t, l.db)})
	}
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.SampledFrom(worlds).Draw(t, "world")
		entity := rapid.SampledFrom([]string{"AgentFeedbackStats", "AgentFeedbackStats", "ProtocolFeedbackStats",
			"ProtocolAgentStats", "AgentValidationStats", "ProtocolValidationStats"}).Draw(t, "entity")
		interval, current := rapid.SampledFrom([]string{"hour", "day"}).Draw(t, "interval"), rapid.Bool().Draw(t,
			"current")
		m := &model{rows: maps.Clone(w.rows), refs: maps.Clone(w.refs), back: w.back}
		seconds := map[string]int64{"hour": 3600, "day": 86400}[interval]
		m.rows[entity] = w.series(entity, seconds, current)
		slices.SortFunc(m.rows[entity], func(a, b row) int { return order(a["id"], b["id"]) })
		depth := 0 // what is of no agent refers to nothing
		if strings.HasPrefix(entity, "Agent") {
			m.refs[entity+".agent"], depth = "Agent", 2
		}
		filter := m.draw(t, entity, depth)
		where := filter.json()
		changed := uint64(rapid.IntRange(0, int(w.tip.Number)+1).Draw(t, "changed"))
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
		if changed > 0 {
			where = map[string]any{"and": []any{where,
				map[string]any{"_change_block": map[string]any{"number_gte": changed}}}}
			m.rows[entity] = m.changedSince(m.rows[entity], changed, seconds)
		}
		got := answered[list](w.t, w.ask(q, map[string]any{"w": where})).List
		want := m.page(entity, filter, by, desc, first, skip)
		if len(got) != len(want) {
			t.Fatalf("%s %v: %d rows, not %d:\n%v\n%v", q, where, len(got), len(want), got, want)
		}
		for i := range want {
			for _, name := range names {
				value := got[i][name]
				if of, isAgent := value.(map[string]any); isAgent {
					value = of["id"]
				}
				if expected := asJSON(want[i][name]); value != expected {
					t.Fatalf("%s %v: %s of row %d is %v, not %v:\n%v", q, where, name, i, value, expected, got)
				}
			}
		}
	})
}
