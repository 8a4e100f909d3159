package subgraph_test

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"repute"
)

// The model holds the entities of a random chain as plain rows, and evaluates filters and orders on them as the
// documentation of graph-node says, without knowing how the product does.

// row is an entity: texts, *big.Rat for numbers, bytes, bool, []string, nil, and ids of other entities.
type row map[string]any

// model has the rows of entities by type.
type model struct {
	rows map[string][]row
	refs map[string]string // Entity.field to the entity that it refers to
	back map[string]string // Entity.field to the field of the entities that refer back
	// happened are the events of series, and tip is the newest block.
	happened []happening
	tip      repute.Block
}

// randomWorld fills a chain with random agents, files and feedback, and the model with the same.
func randomWorld(l *ledger, seed int64) *model {
	r := rand.New(rand.NewSource(seed))
	m := &model{rows: map[string][]row{},
		refs: map[string]string{"Agent.registrationFile": "AgentRegistrationFile", "Agent.feedback": "Feedback",
			"Feedback.agent": "Agent", "Feedback.responses": "FeedbackResponse",
			"FeedbackResponse.feedback": "Feedback"},
		back: map[string]string{"Agent.feedback": "agent", "Feedback.responses": "feedback"}}
	for n := range 30 {
		m.agent(l, r, uint64(n*n))
	}
	for range 90 {
		m.feedback(l, r)
	}
	for range 30 {
		m.event(l, r)
	}
	l.read()
	m.tip = l.tip
	return m
}

// number returns an exact number.
func number(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

// agent registers an agent, with a file or without one.
func (m *model) agent(l *ledger, r *rand.Rand, id uint64) {
	uri := fmt.Sprintf("https://a%d.example/%%_%d", r.Intn(3), id)
	owner := addr(r.Intn(4))
	key := fmt.Sprintf("%d:%d", chainID, id)
	b := l.add(mint(id, owner, uri)...)
	a := row{"id": key, "chainId": number(chainID), "agentId": number(int64(id)), "agentURI": uri,
		"agentURIType": "https",
		"owner":        owner.Bytes(), "agentWallet": owner.Bytes(), "operators": []string{},
		"totalFeedback": number(0),
		"createdAt":     number(b.Time.Unix()), "updatedAt": number(b.Time.Unix()),
		"lastActivity": number(b.Time.Unix()), "registrationFile": nil}
	m.rows["Agent"] = append(m.rows["Agent"], a)
	m.happened = append(m.happened, happening{agentRegistered, key, b, nil})
	if r.Intn(3) == 0 {
		return
	}
	active, trust := r.Intn(2) == 0, []string{"reputation", "tee", "Crypto"}[:r.Intn(4)]
	file := &repute.Registration{Name: []string{"", "Alpha", "beta", "Alphabet", "50%"}[r.Intn(5)], Active: &active,
		SupportedTrust: trust}
	f := row{"name": textOf(file.Name), "active": active, "supportedTrusts": slices.Clone(trust), "mcpEndpoint": nil,
		"agentId": key}
	if r.Intn(2) == 0 {
		file.Services = []repute.Service{{Name: "mcp", Endpoint: uri}}
		f["mcpEndpoint"] = uri
	}
	l.registration(uri, file)
	a["registrationFile"] = key // its own id is that of the bytes
	f["id"] = key
	m.rows["AgentRegistrationFile"] = append(m.rows["AgentRegistrationFile"], f)
}

// textOf returns nil for an empty text, as files have it.
func textOf(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// feedback rates an agent.
func (m *model) feedback(l *ledger, r *rand.Rand) {
	a := m.rows["Agent"][r.Intn(len(m.rows["Agent"]))]
	client := addr(200 + r.Intn(3))
	index := uint64(1)
	for _, f := range m.rows["Feedback"] {
		if f["agent"] == a["id"] && bytes.Equal(f["clientAddress"].([]byte), client.Bytes()) {
			index++
		}
	}
	value, decimals := int64(r.Intn(2001)-1000), []uint8{0, 1, 2, 18}[r.Intn(4)]
	tags := []string{"", "quality", "Quality", "a\\b", "é%"}
	e := repute.NewFeedback{TokenID: token(a["agentId"].(*big.Rat).Num().Uint64()), Client: client, Index: index,
		Value: big.NewInt(value), Decimals: decimals, Tag1: tags[r.Intn(5)], Tag2: tags[r.Intn(2)]}
	b := l.add(e)
	scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(decimals)), nil)
	rating := new(big.Rat).SetFrac(big.NewInt(value), scale)
	m.happened = append(m.happened, happening{agentRated, a["id"].(string), b, rating})
	m.rows["Feedback"] = append(m.rows["Feedback"], row{
		"id": fmt.Sprintf("%s:%s:%d", a["id"], strings.ToLower(client.Hex()), index), "agent": a["id"],
		"clientAddress": client.Bytes(), "feedbackIndex": number(int64(index)),
		"value": rating, "tag1": e.Tag1, "tag2": e.Tag2, "isRevoked": false,
		"createdAt": number(b.Time.Unix()), "revokedAt": nil})
	a["totalFeedback"] = new(big.Rat).Add(a["totalFeedback"].(*big.Rat), number(1))
	a["updatedAt"], a["lastActivity"] = number(b.Time.Unix()), number(b.Time.Unix())
}

// event revokes feedback or answers it.
func (m *model) event(l *ledger, r *rand.Rand) {
	f := m.rows["Feedback"][r.Intn(len(m.rows["Feedback"]))]
	a := m.find("Agent", f["agent"])
	id, client := token(a["agentId"].(*big.Rat).Num().Uint64()), common.BytesToAddress(f["clientAddress"].([]byte))
	index := f["feedbackIndex"].(*big.Rat).Num().Uint64()
	if r.Intn(2) == 0 || f["isRevoked"] == true {
		b := l.add(repute.ResponseAppended{TokenID: id, Client: client, Index: index, Responder: addr(r.Intn(4))})
		m.rows["FeedbackResponse"] = append(m.rows["FeedbackResponse"], row{
			"id": fmt.Sprintf("%s:%s:0", f["id"], hashOf(b.Number, 0).Hex()), "feedback": f["id"],
			"createdAt": number(b.Time.Unix())})
		a["updatedAt"] = number(b.Time.Unix())
		return
	}
	b := l.add(repute.FeedbackRevoked{TokenID: id, Client: client, Index: index})
	m.happened = append(m.happened, happening{ratingRevoked, a["id"].(string), b, f["value"].(*big.Rat)})
	f["isRevoked"], f["revokedAt"] = true, number(b.Time.Unix())
	a["totalFeedback"] = new(big.Rat).Sub(a["totalFeedback"].(*big.Rat), number(1))
	a["updatedAt"] = number(b.Time.Unix())
}

// find returns the row with an id; nil for none.
func (m *model) find(entity string, id any) row {
	for _, r := range m.rows[entity] {
		if r["id"] == id {
			return r
		}
	}
	return nil
}

// where is a filter: and, or, a condition on other entities, or a comparison.
type where struct {
	and, or  []where
	field    string
	child    *where
	op       string
	value    any // a Go value of the model; a list for in, not_in and lists
	literal  any // the same as JSON
	hasValue bool
}

// json returns the filter as variables have it.
func (w where) json() map[string]any {
	list := func(in []where) []any {
		out := []any{}
		for _, one := range in {
			out = append(out, one.json())
		}
		return out
	}
	switch {
	case w.and != nil:
		return map[string]any{"and": list(w.and)}
	case w.or != nil:
		return map[string]any{"or": list(w.or)}
	case w.child != nil:
		return map[string]any{w.field + "_": w.child.json()}
	case w.hasValue:
		name := w.field
		if w.op != "" {
			name += "_" + w.op
		}
		return map[string]any{name: w.literal}
	}
	return map[string]any{}
}

// matches reports whether a row meets a filter.
func (m *model) matches(entity string, r row, w where) bool {
	switch {
	case w.and != nil:
		return !slices.ContainsFunc(w.and, func(one where) bool { return !m.matches(entity, r, one) })
	case w.or != nil:
		return slices.ContainsFunc(w.or, func(one where) bool { return m.matches(entity, r, one) })
	case w.child != nil:
		return m.childMatches(entity, r, w)
	case w.hasValue:
		return compare(r[w.field], w.op, w.value)
	}
	return true
}

// childMatches reports whether an entity that a field refers to meets a filter.
func (m *model) childMatches(entity string, r row, w where) bool {
	to := m.refs[entity+"."+w.field]
	for _, c := range m.rows[to] {
		back, many := m.back[entity+"."+w.field]
		if (many && c[back] == r["id"] || !many && c["id"] == r[w.field]) && m.matches(to, c, *w.child) {
			return true
		}
	}
	return false
}

// compare compares a value as Postgres does: null is equal to null alone, and nothing else is true of it.
func compare(x any, op string, value any) bool {
	switch op {
	case "":
		return equal(x, value)
	case "not":
		return value == nil && x != nil || value != nil && x != nil && !equal(x, value)
	case "in":
		return slices.ContainsFunc(value.([]any), func(v any) bool { return equal(x, v) })
	case "not_in":
		list := value.([]any)
		return len(list) == 0 || x != nil && !slices.ContainsFunc(list, func(v any) bool { return equal(x, v) })
	}
	if x == nil {
		return false
	}
	if list, isList := x.([]string); isList {
		return compareLists(list, op, value.([]string))
	}
	switch op {
	case "gt":
		return order(x, value) > 0
	case "lt":
		return order(x, value) < 0
	case "gte":
		return order(x, value) >= 0
	case "lte":
		return order(x, value) <= 0
	}
	return compareTexts(asText(x), op, asText(value))
}

// compareTexts compares parts of texts.
func compareTexts(x, op, part string) bool {
	op, negative := strings.CutPrefix(op, "not_")
	if plain, nocase := strings.CutSuffix(op, "_nocase"); nocase {
		op, x, part = plain, strings.ToLower(x), strings.ToLower(part)
	}
	found := map[string]func(string, string) bool{"contains": strings.Contains, "starts_with": strings.HasPrefix,
		"ends_with": strings.HasSuffix}[op](x, part)
	return found != negative
}

// compareLists compares elements of lists.
func compareLists(x []string, op string, values []string) bool {
	has := func(v string) bool { return slices.Contains(x, v) }
	any := slices.ContainsFunc(values, func(v string) bool {
		return slices.ContainsFunc(x, func(e string) bool { return strings.EqualFold(e, v) })
	})
	switch op {
	case "contains":
		return !slices.ContainsFunc(values, func(v string) bool { return !has(v) })
	case "not_contains":
		return !slices.ContainsFunc(values, has)
	case "contains_nocase":
		return any
	}
	return !any
}

// equal reports whether two values are the same.
func equal(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if list, isList := a.([]string); isList {
		return slices.Equal(list, b.([]string))
	}
	return order(a, b) == 0
}

// order compares two values of one type.
func order(a, b any) int {
	switch a := a.(type) {
	case *big.Rat:
		return a.Cmp(b.(*big.Rat))
	case bool:
		switch {
		case a == b.(bool):
			return 0
		case a:
			return 1
		}
		return -1
	}
	return strings.Compare(asText(a), asText(b))
}

// asText returns a text or bytes as a string.
func asText(v any) string {
	if b, isBytes := v.([]byte); isBytes {
		return string(b)
	}
	return v.(string)
}

// answer returns the ids of a page.
func (m *model) answer(entity string, w where, by string, desc bool, first, skip int) []string {
	ids := []string{}
	for _, r := range m.page(entity, w, by, desc, first, skip) {
		ids = append(ids, r["id"].(string))
	}
	return ids
}

// page returns the rows that match, ordered by a field, and by id where it is equal. Null is above all.
func (m *model) page(entity string, w where, by string, desc bool, first, skip int) []row {
	found := []row{}
	for _, r := range m.rows[entity] {
		if m.matches(entity, r, w) {
			found = append(found, r)
		}
	}
	key := func(r row) any {
		own, sub, nested := strings.Cut(by, "__")
		if !nested {
			return r[own]
		}
		if c := m.find(m.refs[entity+"."+own], r[own]); c != nil {
			return c[sub]
		}
		return nil
	}
	slices.SortFunc(found, func(a, b row) int {
		x, y := key(a), key(b)
		var n int
		switch {
		case x == nil || y == nil:
			n = map[bool]int{true: 1}[x == nil] - map[bool]int{true: 1}[y == nil]
		default:
			n = order(x, y)
		}
		if n == 0 {
			n = order(a["id"], b["id"])
		}
		if desc {
			return -n
		}
		return n
	})
	found = found[min(skip, len(found)):]
	return found[:min(first, len(found))]
}
