package finder_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/api/finder"
	"repute/intent"
	"repute/intent/sentence"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/denydb"
	"repute/store/manifestdb"
)

func open(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func exec(t *testing.T, db *store.DB, sql string, args ...any) {
	t.Helper()
	if _, err := db.Pool().Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

// serve stores what a domain serves: intents by name and description, of which the first has a price. Nil: it serves
// none any more.
func serve(t *testing.T, db *store.DB, domain string, verified int, intents ...string) {
	t.Helper()
	if _, err := manifestdb.Import(t.Context(), db, []string{domain}); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `update manifests set due_at = case domain when $1 then now() else now() + interval '1 day' end`,
		domain)
	claims, err := manifestdb.ClaimDue(t.Context(), db, 1)
	if err != nil || len(claims) != 1 {
		t.Fatalf("%+v, %v", claims, err)
	}
	r := manifestdb.Result{Wait: time.Hour, Gone: manifestdb.StateMissing}
	if intents != nil {
		c := manifestdb.Content{State: manifestdb.StateOK, Body: fmt.Append(nil, intents), Parser: 1,
			Format:   "agent-json",
			Declared: verified, Verified: verified, Verdict: json.RawMessage("{}"), Complete: true}
		for i := 0; i < len(intents); i += 2 {
			in := manifestdb.Intent{Name: intents[i], Description: intents[i+1], Terms: json.RawMessage("{}")}
			if price := "0.5"; i == 0 {
				in.Price, in.Networks = &price, []string{"base"}
			}
			c.Intents = append(c.Intents, in)
		}
		r = manifestdb.Result{Wait: time.Hour, Content: &c}
	}
	if err := manifestdb.Save(t.Context(), db, claims[0], r); err != nil {
		t.Fatal(err)
	}
}

// agents are documents of three agents, of which two share one.
const agents = `
	insert into chains (chain_id, name, identity, reputation, validations, start_block, imported, cursor_block, cursor_hash)
		select 1, 'one', decode(repeat('01', 20), 'hex'), decode(repeat('02', 20), 'hex'), '{}', 1, false, 10, '';
	insert into documents (sha256, media_type, first_seen) values (sha256('a'), '', now()), (sha256('b'), '', now());
	insert into uris (hash, uri, kind, host, sha256) values (sha256('1'), '1', 'https', 'x', sha256('a')),
		(sha256('2'), '2', 'https', 'x', sha256('b'));
	insert into parses (sha256, kind, parser_version, content, problems, errors) values
		(sha256('a'), 'registration', 1, '{"services":[{"name":"OASF","skills":["natural_language_processing/summarization"]},
			{"name":"MCP","mcpTools":[],"tools":["getWeatherForecast"]}]}', '[]', 0),
		(sha256('b'), 'card', 1, '{"Skills":[{"Name":"mow_lawn","Description":"Cuts the grass of a garden.","Tags":["garden"]}]}', '[]', 0);
	insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log,
		updated_block, updated_log)
	select 1, k.token, '', false, '', '', u.id, 1, 1, 1, 1 from uris u
		join (values (0, '1'), (1, '1'), (2, '2')) k(token, uri) on convert_to(k.uri, 'UTF8') = u.uri;`

// scored gives agent 1:1 a score of 2.
const scored = `
	insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, scorer, params, tags, roots, links,
		weights, identities, edges) values (1, 1, 1, 1, 1, '', '1', '', '', '', '', '', 0, 0);
	insert into trust_scores (chain_id, token_id, run, block, block_hash, evidence, status, score, low, high, mean,
		confidence, tier, result) values (1, 1, 1, 1, '', '', 'rated', 20000, 0, 0, 0, 0, 2, '')`

// running returns a finder that is up to date within milliseconds.
func running(t *testing.T, db *store.DB, e intent.Embedder) *finder.Finder {
	t.Helper()
	x, err := finder.New(db, e, finder.Options{Every: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- x.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return x
}

func encoder(t *testing.T) *sentence.Encoder {
	t.Helper()
	e, err := sentence.New()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// find returns an answer, and its items as text.
func find(t *testing.T, x *finder.Finder, f manifestdb.IntentFilter) (manifestdb.FoundIntents, []string) {
	t.Helper()
	if f.Limit == 0 {
		f.Limit = 10
	}
	found, err := x.Find(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	out := []string{}
	for _, i := range found.Items {
		text := i.Kind + " " + i.Name + " " + i.Domain
		if i.Agent != nil {
			text += fmt.Sprintf("%d:%s of %d", i.Agent.ChainID, i.Agent.TokenID.Dec(), i.Agents)
		}
		out = append(out, text)
	}
	return found, out
}

// first waits until a filter has a first item, "" for none.
func first(t *testing.T, x *finder.Finder, f manifestdb.IntentFilter, want string) manifestdb.FoundIntents {
	t.Helper()
	var got []string
	var found manifestdb.FoundIntents
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if found, got = find(t, x, f); len(got) == 0 && want == "" || len(got) > 0 && got[0] == want {
			return found
		}
	}
	t.Fatalf("%+v: %q, want first %q", f, got, want)
	return found
}

const (
	flight = "intent book_flight air.example"
	hotel  = "intent reserve_room inn.example"
)

// Offers are found by what they mean, and the filters hold for each kind.
func TestFind(t *testing.T) {
	t.Parallel()
	db := open(t)
	exec(t, db, agents)
	exec(t, db, scored)
	serve(t, db, "air.example", 2, "book_flight", "Books a flight between two airports.", "free_map",
		"Draws a map of a city.")
	serve(t, db, "inn.example", 3, "reserve_room", "Reserves a hotel room for some nights.")
	x := running(t, db, encoder(t))
	asked := func(text string) manifestdb.IntentFilter { return manifestdb.IntentFilter{Text: text} }
	mow := "skill mow_lawn 1:2 of 1"
	first(t, x, asked("trim my yard"), mow) // all documents are read
	found := first(t, x, asked("I need to get on a plane to Paris"), flight)
	if found.By != manifestdb.ByMeaning || found.Margin <= 0 || found.Items[0].Similarity <= 0 ||
		found.Items[0].Rank < found.Items[1].Rank || found.Items[0].Price == nil {
		t.Errorf("%+v", found)
	}
	if found := first(t, x, asked("book a flight between two airports"), flight); !found.Sure {
		t.Errorf("unsure of its own words: %v", found.Margin)
	}
	if found, _ := find(t, x, asked("philosophy of the ancient Greeks")); found.Sure || len(found.Items) == 0 {
		t.Errorf("sure of %+v", found.Items[0])
	}
	first(t, x, asked("will it rain tomorrow, what is the weather"),
		"tool getWeatherForecast 1:1 of 2") // the better one
	first(t, x, asked("summarize this long text"), "class natural_language_processing/summarization 1:1 of 2")
	least, tier, price := repute.Points(10000), 3, "0.1"
	for name, c := range map[string]struct {
		f    manifestdb.IntentFilter
		want []string
	}{
		"kind":    {manifestdb.IntentFilter{Kind: "skill"}, []string{mow}},
		"tier":    {manifestdb.IntentFilter{Tier: &tier}, []string{hotel}},
		"price":   {manifestdb.IntentFilter{MaxPrice: &price}, []string{}},
		"network": {manifestdb.IntentFilter{Network: "base", Limit: 1}, []string{flight}},
		"score": {manifestdb.IntentFilter{MinScore: &least, Kind: "tool"},
			[]string{"tool getWeatherForecast 1:1 of 1"}},
		"score of another": {manifestdb.IntentFilter{MinScore: &least, Kind: "skill"}, []string{}},
	} {
		if c.f.Text = "a flight"; c.f.Kind == "skill" {
			c.f.Text = "lawn"
		}
		if _, got := find(t, x, c.f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// The index follows what domains serve and what the operator denies, and a second process computes no vector again.
func TestFollows(t *testing.T) {
	t.Parallel()
	db := open(t)
	x := running(t, db, encoder(t))
	plane := manifestdb.IntentFilter{Text: "get me on a plane"}
	first(t, x, plane, "")
	serve(t, db, "air.example", 2, "book_flight", "Books a flight between two airports.")
	first(t, x, plane, flight)
	serve(t, db, "air.example", 2, "sell_bread", "Sells bread and cake.")
	if found := first(t, x, plane, "intent sell_bread air.example"); len(found.Items) != 1 {
		t.Errorf("%+v", found)
	}
	serve(t, db, "inn.example", 2, "reserve_room", "Reserves a hotel room for some nights.")
	first(t, x, manifestdb.IntentFilter{Text: "a bed for the night"}, hotel)
	second := running(t, db, forbidden{encoder(t), "bread", "hotel"})
	first(t, second, manifestdb.IntentFilter{Text: "a bed for the night"}, hotel)
	denial := repute.Denial{Kind: repute.DenyHost, Value: "inn.example", Reason: "fraud"}
	if err := denydb.Deny(t.Context(), db, denial, false); err != nil {
		t.Fatal(err)
	}
	if found, got := find(t, x, manifestdb.IntentFilter{Text: "a bed for the night", Limit: 1}); len(got) != 1 ||
		found.Items[0].Domain != "air.example" {
		t.Errorf("denied: %q", got)
	}
	serve(t, db, "air.example", 0)
	first(t, x, plane, "")
}

// Documents that agents register later are found, also after the change feed was pruned.
func TestFollowsAgents(t *testing.T) {
	t.Parallel()
	db := open(t)
	exec(t, db, agents)
	x := running(t, db, encoder(t))
	first(t, x, manifestdb.IntentFilter{Text: "trim my yard"}, "skill mow_lawn 1:2 of 1")
	add := func(token int, sum, tool string) {
		exec(t, db,
			`insert into documents (sha256, media_type, first_seen) values (sha256($1::text::bytea), '', now())`, sum)
		exec(t, db, `insert into parses (sha256, kind, parser_version, content, problems, errors) values
			(sha256($1::text::bytea), 'registration', 1, jsonb_build_object('services', jsonb_build_array(
			jsonb_build_object('name', 'MCP', 'tools', jsonb_build_array($2::text)))), '[]', 0)`, sum, tool)
		exec(t, db,
			`insert into uris (hash, uri, kind, host, sha256) values (sha256($1::text::bytea), $1::text::bytea, 'https', 'x',
			sha256($1::text::bytea))`, sum)
		exec(t, db, `insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block,
			registered_log, updated_block, updated_log)
			select 1, $2, '', false, '', '', id, 1, 1, 1, 1 from uris where uri = $1::text::bytea`, sum, token)
		exec(t, db, `insert into changes (chain_id, kind, block, log_index, token_id, data)
			values (1, 'document.updated', 0, 0, $1, '{}')`, token)
	}
	add(7, "c", "play_chess")
	first(t, x, manifestdb.IntentFilter{Text: "a game of chess"}, "tool play_chess 1:7 of 1")
	exec(t, db, `delete from changes`)
	add(8, "d", "bake_pizza")
	first(t, x, manifestdb.IntentFilter{Text: "I am hungry for a pizza"}, "tool bake_pizza 1:8 of 1")
	exec(t, db, `delete from agents where token_id = 8`)
	first(t, x, manifestdb.IntentFilter{Text: "I am hungry for a pizza", Kind: "tool"}, "tool play_chess 1:7 of 1")
}

// While the index loads, and while the model is unavailable, words are compared.
func TestWordsServe(t *testing.T) {
	t.Parallel()
	db := open(t)
	serve(t, db, "air.example", 2, "book_flight", "Books a flight between two airports.")
	x, err := finder.New(db, encoder(t), finder.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if found, got := find(t, x, manifestdb.IntentFilter{Text: "flight"}); found.By != manifestdb.ByWords ||
		found.Sure ||
		!slices.Equal(got, []string{flight}) {
		t.Errorf("%+v", found)
	}
	broken := running(t, db, forbidden{encoder(t), "flight", ""}) // neither the intent nor the query
	if found, got := find(t, broken, manifestdb.IntentFilter{Text: "flight"}); found.By != manifestdb.ByWords ||
		!slices.Equal(got, []string{flight}) || broken.Loaded() {
		t.Errorf("%+v", found)
	}
	serve(t, db, "air.example", 2, "sell_bread", "Sells bread.")
	first(t, broken, manifestdb.IntentFilter{Text: "loaf"}, "intent sell_bread air.example")
	if found, _ := find(t, broken,
		manifestdb.IntentFilter{Text: "the bread of a flight"}); found.By != manifestdb.ByWords {
		t.Errorf("the query could not be embedded: %+v", found)
	}
}

// forbidden is a model that refuses texts with some words, as a server that is unavailable does.
type forbidden struct {
	*sentence.Encoder
	first, second string
}

// Embed implements intent.Embedder.
func (f forbidden) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	for _, text := range texts {
		for _, word := range []string{f.first, f.second} {
			if word != "" && strings.Contains(text, word) {
				return nil, errors.New("is away")
			}
		}
	}
	return f.Encoder.Embed(ctx, texts)
}

// Intents that change while very many documents are read for the first time are found before all of them are read.
func TestIntentsDoNotWaitForDocuments(t *testing.T) {
	t.Parallel()
	db := open(t)
	exec(t, db, agents)
	exec(t, db, `
		with made as (
			insert into documents (sha256, media_type, first_seen)
			select sha256(i::text::bytea), '', now() from generate_series(11, 310) i),
		parsed as (
			insert into parses (sha256, kind, parser_version, content, problems, errors)
			select sha256(i::text::bytea), 'card', 1, jsonb_build_object('Skills', jsonb_build_array(jsonb_build_object(
				'Name', 'mow', 'Description', 'Cuts the lawn ' || i))), '[]', 0 from generate_series(11, 310) i),
		named as (
			insert into uris (hash, uri, kind, host, sha256)
			select sha256(i::text::bytea), ('u' || i)::bytea, 'https', 'x', sha256(i::text::bytea) from generate_series(11, 310) i
			returning id)
		insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log,
			updated_block, updated_log) select 1, 10 + id, '', false, '', '', id, 1, 1, 1, 1 from named`)
	e := &busy{Encoder: encoder(t), begun: make(chan struct{}), served: make(chan struct{}), end: make(chan struct{})}
	x := running(t, db, e)
	<-e.begun
	serve(t, db, "air.example", 2, "book_flight", "Books a flight between two airports.")
	close(e.served)
	first(t, x, manifestdb.IntentFilter{Text: "I need to get on a plane to Paris", Kind: "intent"}, flight)
	close(e.end)
}

// busy is a model that waits after it embedded some lawns, and does not embed many of them before the end.
type busy struct {
	*sentence.Encoder
	lawns              int
	begun, served, end chan struct{}
}

// Embed implements intent.Embedder. One goroutine at a time embeds lawns.
func (b *busy) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	for _, text := range texts {
		if !strings.Contains(text, "lawn") {
			continue
		}
		if b.lawns++; b.lawns == 1 {
			close(b.begun)
			<-b.served
		}
		if b.lawns > 200 {
			select {
			case <-b.end:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
	}
	return b.Encoder.Embed(ctx, texts)
}
