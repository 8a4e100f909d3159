package api_test

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"repute"
	"repute/api"
	"repute/api/wire"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store/docdb"
)

// boundOfAgent is what one object may take in an answer, however long its texts are.
const boundOfAgent = 64 << 10

// longTexts is an agent all of whose texts are a megabyte long, and some of which hold
// what JSON has to escape.
type longTexts struct {
	uri, value, key, tag1, tag2, endpoint, feedbackURI, responseURI, requestURI, answerURI, tag, document string
}

func newLongTexts() longTexts {
	long := func(head, of string) string { return head + strings.Repeat(of, (1<<20)/len(of)) }
	registration, err := json.Marshal(map[string]any{
		"name": long("Long ", "name "), "description": long("<script>", "&<>\""),
		"image":    long("https://i.example/", "i"),
		"services": []any{map[string]any{"name": long("svc", "s"), "endpoint": long("https://e.example/", "e")}},
	})
	if err != nil {
		panic(err)
	}
	return longTexts{
		uri: "data:application/json," + string(registration), document: string(registration),
		value: long("value ", "v\x01"), key: long("key ", "é"), tag1: long("one ", "1"), tag2: long("two ", "\xff"),
		endpoint: long("https://rated.example/", "<"), feedbackURI: long("https://f.example/", "f"),
		responseURI: long("https://r.example/", "r"),
		requestURI:  long("https://q.example/", "q"), answerURI: long("https://a.example/", "a"),
		tag: long("done ", "t"),
	}
}

// lengthy is agent 1:0 of these texts.
func lengthy(t *testing.T, o api.Options, w longTexts, with ...httpapi.ServerOptions) *httptest.Server {
	t.Helper()
	o.DB = open(t, pgtest.New(t))
	l := newLedger(t, o.DB, 1)
	l.add(mint(0, addr(1), w.uri)...)
	l.add(repute.MetadataSet{TokenID: token(0), Key: "long", Value: []byte(w.value)},
		repute.MetadataSet{TokenID: token(0), Key: w.key, Value: []byte("v")})
	l.add(
		repute.NewFeedback{TokenID: token(0), Client: addr(2), Index: 1, Value: big.NewInt(5), Tag1: w.tag1,
			Tag2:     w.tag2,
			Endpoint: w.endpoint, URI: w.feedbackURI},
		repute.ResponseAppended{TokenID: token(0), Client: addr(2), Index: 1, Responder: addr(3), URI: w.responseURI},
		repute.ValidationRequest{Validator: addr(4), TokenID: token(0), URI: w.requestURI, RequestHash: [32]byte{1}},
		repute.ValidationResponse{Validator: addr(4), TokenID: token(0), RequestHash: [32]byte{1}, Response: 90,
			URI: w.answerURI, Tag: w.tag})
	var r repute.Registration
	if err := json.Unmarshal([]byte(w.document), &r); err != nil {
		t.Fatal(err)
	}
	problems := []repute.Problem{{Code: "WA515", Severity: "warning", Path: "/" + strings.Repeat("p", 1<<20),
		Message: strings.Repeat("m", 1<<20)}}
	for range 300 {
		problems = append(problems, repute.Problem{Code: "WA516", Severity: "warning", Path: "/services/0",
			Message: strings.Repeat("<", 100)})
	}
	saveFiles(t, o.DB, map[string]docdb.FetchResult{w.uri: {Body: []byte(w.document), MediaType: "application/json",
		Source: "data", Registration: &r, Problems: problems}})
	return serve(t, o, with...)
}

// TestTextsAreCut: a text of a megabyte makes no answer long, whichever shows it. It ends
// visibly, and the path beside it gives the whole.
func TestTextsAreCut(t *testing.T) {
	t.Parallel()
	w := newLongTexts()
	s := lengthy(t, api.Options{Tools: newTools(t)}, w, unlimited())
	for path, fields := range map[string][]string{
		"/agents/1:0":             {"uri", "document", "metadata/0/key", "metadata/1/value"},
		"/agents/1/0":             {"uri", "document"},
		"/agents/1:0?at=latest":   {"uri", "document"},
		"/agents":                 {"uri", "document"},
		"/agents?q=long":          {"uri", "document"},
		"/agents/1:0/feedback":    {"tag1", "tag2", "endpoint", "uri", "responses/0/uri"},
		"/agents/1:0/validations": {"requestUri", "answer/uri", "answer/tag"},
		"/agents/1:0/reputation":  {"tag"},
		"/agents/1:0/documents":   {"uri"},
	} {
		r := get(t, s, path)
		if r.status != 200 || len(r.body) > boundOfAgent {
			t.Errorf("%s: %d, %d bytes", path, r.status, len(r.body))
		}
		cuts := cutsIn(t, r.body)
		for _, field := range fields {
			if cuts[field] == "" {
				t.Errorf("%s: no cut of %s in %v", path, field, cuts)
			}
		}
		checkWholes(t, s, w, path, cuts)
	}
	b := connect(t, s)
	for name, in := range map[string]string{"repute_get_agent": `{"agentId":"1:0"}`, "repute_search_agents": `{}`,
		"repute_get_reputation": `{"agentId":"1:0"}`,
		"repute_explain_score":  `{"agentId":"1:0"}`, "repute_decide": `{"agentId":"1:0"}`} {
		if r := b.call(name, in); r.IsError || len(said(r)) > boundOfAgent {
			t.Errorf("%s: error %v, %d bytes", name, r.IsError, len(said(r)))
		}
	}
	const everything = `{ uri uriHex cut { field whole } metadata { key keyHex value text } name description services { name endpoint } document { registration { name description image services { name endpoint } }
		problems { path message } } feedback { nodes { tag1 tag2 endpoint uri cut { field whole } responses { uri } } }
			validations { nodes { requestUri cut { field whole } answer { uri tag } } }
		reputation { tags { tag cut { field whole } } } documents { nodes { uri cut { field whole } } } }`
	for _, q := range []string{`{ agent(id: "1:0") ` + everything + ` }`, `{ agents { nodes ` + everything + ` } }`,
		`{ search(query: "long") { nodes ` + everything + ` } }`} {
		r := get(t, s, "/graphql"+query("query", q))
		if cuts := cutsIn(t, r.body); len(r.body) > 2*boundOfAgent || len(cuts) < 10 {
			t.Errorf("%.30s: %d bytes, cut %v", q, len(r.body), cuts)
		}
	}
}

// cutsIn are all cuts of an answer, the path of the whole by field.
func cutsIn(t *testing.T, body []byte) map[string]string {
	t.Helper()
	var v any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v: %.200s", err, body)
	}
	out := map[string]string{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if field, ok := v["field"].(string); ok && v["whole"] != nil {
				out[field] = v["whole"].(string)
			}
			for _, below := range v {
				walk(below)
			}
		case []any:
			for _, below := range v {
				walk(below)
			}
		}
	}
	walk(v)
	return out
}

// checkWholes follows every path that an answer names.
func checkWholes(t *testing.T, s *httptest.Server, w longTexts, path string, cuts map[string]string) {
	t.Helper()
	feedback := map[string]string{"uri": w.feedbackURI}
	for field, whole := range cuts {
		want := map[string]string{"uri": w.uri, "document": w.document, "metadata/0/key": w.key,
			"metadata/1/value": w.value, "tag1": w.tag1, "tag2": w.tag2,
			"endpoint": w.endpoint, "responses/0/uri": w.responseURI, "requestUri": w.requestURI,
			"answer/uri": w.answerURI,
			"answer/tag": w.tag, "tag": w.tag1}[field]
		if strings.Contains(path, "/feedback") && feedback[field] != "" {
			want = feedback[field]
		}
		r := get(t, s, whole)
		if r.status != 200 || want == "" || string(r.body) != want {
			t.Errorf("%s: %s at %s: %d, %d bytes, want %d", path, field, whole, r.status, len(r.body), len(want))
		}
		if r.header.Get("X-Content-Type-Options") != "nosniff" ||
			strings.Contains(r.header.Get("Content-Type"), "html") ||
			!strings.HasPrefix(r.header.Get("Content-Disposition"), "attachment") {
			t.Errorf("%s: %v", whole, r.header)
		}
	}
}

// TestCutTextsEndVisibly: a cut text ends with an ellipsis, another one does not.
func TestCutTextsEndVisibly(t *testing.T) {
	t.Parallel()
	w := newLongTexts()
	s := lengthy(t, api.Options{}, w)
	a := as[wire.AgentAnswer](t, get(t, s, "/agents/1:0"))
	f := as[wire.FeedbackList](t, get(t, s, "/agents/1:0/feedback")).Items[0]
	v := as[wire.ValidationList](t, get(t, s, "/agents/1:0/validations")).Items[0]
	r := a.Document.Registration
	for whole, shown := range map[string]string{w.uri: a.URI, w.key: a.Metadata[0].Key, w.tag1: f.Tag1,
		w.endpoint: f.Endpoint, w.feedbackURI: f.URI,
		w.responseURI: f.Responses[0].URI, w.requestURI: v.RequestURI, w.answerURI: v.Answer.URI, w.tag: v.Answer.Tag} {
		head, cut := strings.CutSuffix(shown, "…")
		if !cut || !strings.HasPrefix(whole, head) || len(shown) > 2048 || len(head) < 300 {
			t.Errorf("%.30q… is shown in %d bytes: …%q", whole, len(shown), shown[max(0, len(shown)-10):])
		}
	}
	if !r.Partial || !strings.HasSuffix(*a.Name, "…") || !strings.HasSuffix(r.Services[0].Endpoint, "…") ||
		len(a.Document.Problems) > 100 || a.Document.ProblemCount != 301 ||
		!strings.HasSuffix(a.Document.Problems[0].Message, "…") {
		t.Errorf("document: partial %v, %d problems of %d", r.Partial, len(a.Document.Problems),
			a.Document.ProblemCount)
	}
	for _, path := range []string{"/agents/1:0/texts/1/1/uri", "/agents/1:0/texts/999/1/tag1",
		"/agents/1:0/texts/x/1/tag1", "/agents/1:0/texts/1/9223372036854775806/tag1",
		"/agents/1:0/texts/9223372036854775806/1/tag1", "/agents/1:9/uri", "/tags/0x12", "/agents/1:0/uri?at=soon"} {
		if r := get(t, s, path); r.status != 400 && r.status != 404 {
			t.Errorf("%s: %d", path, r.status)
		}
	}
}

func post(t *testing.T, s *httptest.Server, body string) reply {
	t.Helper()
	return do(t, s, http.MethodPost, "/graphql", strings.NewReader(body), "Content-Type", "application/json")
}

// TestErrorsAreCut checks that an error quotes only the beginning of the input.
func TestErrorsAreCut(t *testing.T) {
	t.Parallel()
	s, _ := populated(t, api.Options{Tools: newTools(t)})
	long := strings.Repeat("x", 200<<10)
	for _, r := range []reply{
		post(t, s, fmt.Sprintf(`{"query":"{ agent(id: \"%s\") { id } }"}`, long)),
		post(t, s, fmt.Sprintf(`{"query":"{ %s }"}`, long)),
		post(t, s, fmt.Sprintf(`{"query":"{ agents(filter: {rating: %s}) { asOf { block } } }"}`, long)),
		get(t, s, "/agents/"+long[:8<<10]), get(t, s, "/agents?sort="+long[:8<<10]),
		get(t, s, "/agents?"+long[:8<<10]+"=1"),
	} {
		if len(r.body) > 16<<10 {
			t.Errorf("%d: an error of %d bytes: %.100s", r.status, len(r.body), r.body)
		}
	}
	b := connect(t, s)
	for name, in := range map[string]string{"repute_get_agent": `{"agentId":"` + long + `"}`,
		"repute_search_agents": `{"sort":"` + long + `"}`, "repute_decide": `{"` + long + `":1}`} {
		if r := b.call(name, in); !r.IsError || len(said(r)) > 16<<10 {
			t.Errorf("%s: error %v, %d bytes", name, r.IsError, len(said(r)))
		}
	}
}

// TestBoundsHold: whatever bytes texts consist of, and however many there are, an agent
// and a rating take no more than is promised.
func TestBoundsHold(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]string{"invalid": "\xff\xfea", "escaped": "<>&\"", "control": "\x00\x01",
		"short": ""} {
		db := open(t, pgtest.New(t))
		l := newLedger(t, db, 1)
		long := func(head string) string { return head + strings.Repeat(of, 1200) }
		l.add(mint(0, addr(1), long("u"))...)
		var events []repute.Event
		for i := range 210 {
			events = append(events, repute.MetadataSet{TokenID: token(0), Key: long(fmt.Sprintf("%03d", i)),
				Value: []byte(long("v"))})
		}
		events = append(events, repute.NewFeedback{TokenID: token(0), Client: addr(2), Index: 1, Value: big.NewInt(5),
			Tag1: long("1"), Tag2: long("2"), Endpoint: long("e"), URI: long("f")})
		for i := range 12 {
			events = append(events, repute.ResponseAppended{TokenID: token(0), Client: addr(2), Index: 1,
				Responder: addr(3 + i), URI: long(fmt.Sprint("r", i))})
		}
		l.add(events...)
		s := serve(t, api.Options{DB: db}, unlimited())
		for path, most := range map[string]int{"/agents/1:0": 128 << 10, "/agents/1:0/feedback": 96 << 10} {
			if r := get(t, s, path); r.status != 200 || len(r.body) > most {
				t.Errorf("%s, %s: %d, %d bytes, promised are %d", name, path, r.status, len(r.body), most)
			}
		}
	}
}

// TestDroppedWholeHasNoLink names what was cut, and no path to bytes that were dropped.
func TestDroppedWholeHasNoLink(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	populate(t, db)
	saveFiles(t, db, map[string]docdb.FetchResult{
		"https://agent.example/1.json": file(&repute.Registration{Name: "Weather",
			Description: strings.Repeat("rain ", 1000)}, `{"name":"Weather"}`),
	})
	s := serve(t, api.Options{DB: db})
	cutOf := func() *string {
		a := as[wire.AgentAnswer](t, get(t, s, "/agents/8453:1"))
		if len(a.Cut) != 1 || a.Cut[0].Field != "document" {
			t.Fatalf("cut %+v", a.Cut)
		}
		return a.Cut[0].Whole
	}
	if whole := cutOf(); whole == nil || get(t, s, *whole).status != 200 {
		t.Errorf("of kept bytes: %v", whole)
	}
	if _, err := db.Pool().Exec(t.Context(), "update documents set body = null"); err != nil {
		t.Fatal(err)
	}
	if whole := cutOf(); whole != nil {
		t.Errorf("of dropped bytes: %s, which answers %d", *whole, get(t, s, *whole).status)
	}
	if a := ask(t, s, `{ agent(id: "8453:1") { cut { field whole } } }`,
		nil); string(a.Data) != `{"agent":{"cut":[{"field":"document","whole":null}]}}` {
		t.Errorf("graphql: %s", a.Data)
	}
}
