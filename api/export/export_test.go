package export_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"repute"
	"repute/api/export"
	"repute/store"
	"repute/store/denydb"
	"repute/store/exportdb"
	"repute/store/query"
)

func readAll(res *http.Response) ([]byte, error) { return io.ReadAll(res.Body) }

// manifestOf asks for a manifest of the chain; block 0 is the newest final one.
func (w *world) manifest(t failer, set, format string, block uint64) export.SetManifest {
	t.Helper()
	path := fmt.Sprintf("/export/%s/manifest?chainId=%d&format=%s", set, w.chain.ID, format)
	if block != 0 {
		path += fmt.Sprintf("&block=%d", block)
	}
	res, body := get(t, w.server, path)
	for end := time.Now().Add(2 * time.Minute); res.StatusCode == http.StatusServiceUnavailable &&
		time.Now().Before(end); {
		time.Sleep(time.Second) // the parts are being made, as Retry-After says
		res, body = get(t, w.server, path)
	}
	var m export.SetManifest
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s", path, res.StatusCode, body)
	}
	ok(t, json.Unmarshal(body, &m))
	return m
}

// file asks for all parts of a manifest and checks their hashes.
func (w *world) files(t failer, m export.SetManifest) (out [][]byte) {
	t.Helper()
	for _, p := range m.Parts {
		res, body := get(t, w.server, p.URL)
		if sum := sha256.Sum256(body); res.StatusCode != http.StatusOK || hex.EncodeToString(sum[:]) != p.SHA256 ||
			int64(len(body)) != p.Bytes || res.Header.Get("ETag") != `"`+p.SHA256+`"` {
			t.Fatalf("%s: %d, %d bytes", p.URL, res.StatusCode, len(body))
		}
		if res.Header.Get("Repute-Block") != fmt.Sprint(m.Block) {
			t.Fatalf("block %s, want %d", res.Header.Get("Repute-Block"), m.Block)
		}
		out = append(out, body)
	}
	return out
}

// rowsOf returns the rows of a set at a block, from both formats, which must be equal.
func rowsOf[R any](t failer, w *world, set string, block uint64) (rows []R) {
	t.Helper()
	for _, file := range w.files(t, w.manifest(t, set, export.Parquet, block)) {
		some, err := parquet.Read[R](bytes.NewReader(file), int64(len(file)))
		ok(t, err)
		rows = append(rows, some...)
	}
	var lines []R
	for _, file := range w.files(t, w.manifest(t, set, export.NDJSON, block)) {
		for dec := json.NewDecoder(bytes.NewReader(file)); ; {
			var row R
			err := dec.Decode(&row)
			if errors.Is(err, io.EOF) {
				break
			}
			ok(t, err)
			lines = append(lines, row)
		}
	}
	if a, b := asJSON(t, rows), asJSON(t, lines); a != b {
		t.Fatalf("Parquet has\n%s\nNDJSON has\n%s", a, b)
	}
	return rows
}

func asJSON(t failer, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	ok(t, err)
	return string(raw)
}

// Both formats have the same rows, and these are what the lists of the API say of the block.
func TestExportsEqualLists(t *testing.T) {
	t.Parallel()
	w, chain := newWorld(t), uint64(10_000)
	rapid.Check(t, func(t *rapid.T) {
		chain++
		w.begin(t, chain)
		w.draw(t, rapid.IntRange(1, 8).Draw(t, "final blocks"))
		block := w.tip.Number
		w.finalize(t, block)
		w.draw(t, rapid.IntRange(0, 4).Draw(t, "later blocks"))
		agents := rowsOf[exportdb.Agent](t, w, "agents", block)
		ratings := rowsOf[exportdb.Feedback](t, w, "feedback", block)
		events := rowsOf[exportdb.Event](t, w, "events", block)
		w.compareAgents(t, block, agents)
		w.compareRatings(t, block, agents, ratings)
		w.compareEvents(t, block, events)
	})
}

// at is the view of a block.
func at(block uint64) repute.At { return repute.At{Block: block} }

func lower(a common.Address) string { return strings.ToLower(a.Hex()) }

func (w *world) compareAgents(t failer, block uint64, rows []exportdb.Agent) {
	t.Helper()
	found := 0
	for n := range w.agents {
		a, _, err := query.Agent(context.Background(), w.db, repute.AgentID{ChainID: w.chain.ID, TokenID: token(n)},
			at(block))
		if errors.Is(err, repute.ErrNotFound) {
			continue
		}
		ok(t, err)
		found++
		i := slices.IndexFunc(rows, func(r exportdb.Agent) bool { return r.TokenID == fmt.Sprint(n) })
		if i < 0 {
			t.Fatalf("agent %d is missing", n)
		}
		r := rows[i]
		if *r.Owner != lower(a.Owner) || r.URI != strings.ToValidUTF8(a.URI, "\uFFFD") ||
			r.RegisteredAt != a.Registered.Block ||
			*r.RegisteredTx != a.Registered.TxHash.Hex() || int64(r.Feedback) != a.Counts.Feedback ||
			int64(r.Revoked) != a.Counts.Revoked || int64(r.Clients) != a.Counts.Clients ||
			!r.RegisteredTime.Equal(a.Registered.Time) {
			t.Fatalf("%s, the API says %+v", asJSON(t, r), a)
		}
	}
	if found != len(rows) {
		t.Fatalf("%d agents, the API has %d", len(rows), found)
	}
}

func (w *world) compareRatings(t failer, block uint64, agents []exportdb.Agent, rows []exportdb.Feedback) {
	t.Helper()
	found := 0
	for _, agent := range agents {
		var id repute.TokenID
		ok(t, id.SetFromDecimal(agent.TokenID))
		page, err := query.Feedback(context.Background(), w.db, repute.AgentID{ChainID: w.chain.ID, TokenID: id},
			query.FeedbackFilter{IncludeRevoked: true, Limit: store.MaxPage, At: at(block)})
		ok(t, err)
		for _, f := range page.Items {
			found++
			i := slices.IndexFunc(rows, func(r exportdb.Feedback) bool {
				return r.TokenID == agent.TokenID && r.Client == lower(f.Client) && r.Index == f.Index
			})
			if i < 0 {
				t.Fatalf("a rating of %s is missing", agent.TokenID)
			}
			r := rows[i]
			if r.Value != f.Value.String() || r.Decimals != int32(f.Decimals) || r.Tag1 != f.Tag1 ||
				r.Endpoint != f.Endpoint ||
				(r.RevokedBlock != nil) != (f.Revoked != nil) || *r.TxHash != f.Given.TxHash.Hex() ||
				f.Revoked != nil && *r.RevokedBlock != f.Revoked.Block {
				t.Fatalf("%s, the API says %+v", asJSON(t, r), f)
			}
		}
	}
	if found != len(rows) {
		t.Fatalf("%d ratings, the API has %d", len(rows), found)
	}
}

func (w *world) compareEvents(t failer, block uint64, rows []exportdb.Event) {
	t.Helper()
	stored, err := w.db.Pool().Query(context.Background(),
		"select block, log_index, '0x' || encode(data, 'hex') from events where chain_id = $1 and block <= $2 order by 1, 2",
		int64(w.chain.ID), int64(block))
	ok(t, err)
	defer stored.Close()
	for i := 0; stored.Next(); i++ {
		var number, index uint64
		var data string
		ok(t, stored.Scan(&number, &index, &data))
		if i >= len(rows) || rows[i].Block != number || rows[i].LogIndex != index || *rows[i].Data != data {
			t.Fatalf("event %d is block %d, log %d", i, number, index)
		}
	}
}

// seeded is a world with enough rows for several parts, all final.
func seeded(t testing.TB) *world {
	t.Helper()
	w := newWorld(t)
	for range 3 {
		var events []repute.Event
		for range 20 {
			events = append(events, w.mint("https://a.example/file.json", 10)...)
		}
		w.add(t, events...)
	}
	var events []repute.Event
	for n := range uint64(60) {
		events = append(events, w.rate(n, 20, big.NewInt(int64(n)), 0, "quality", "ipfs://f"))
	}
	w.add(t, events...)
	w.finalize(t, w.tip.Number)
	for shown := false; !shown; time.Sleep(10 * time.Millisecond) { // open transactions of other tests hold changes back
		ok(t, w.db.Pool().QueryRow(t.Context(),
			"select not exists (select from changes where xid >= pg_snapshot_xmin(pg_current_snapshot()))").Scan(&shown))
	}
	return w
}

// The bytes of a part are the same each time, in another process, and after the chain went on.
func TestPartsAreDeterministic(t *testing.T) {
	t.Parallel()
	w := seeded(t)
	other := &world{url: w.url, db: openDB(t, w.url), chain: w.chain}
	other.server = serve(t, other.db)
	for _, set := range export.Sets() {
		for _, format := range []string{export.Parquet, export.NDJSON} {
			m := w.manifest(t, set, format, 0)
			first := w.files(t, m)
			if again := other.manifest(t, set, format, m.Block); !reflect.DeepEqual(m, again) {
				t.Errorf("%s as %s: another process has\n%+v, not\n%+v", set, format, again, m)
			}
			if !reflect.DeepEqual(first, other.files(t, m)) {
				t.Errorf("%s as %s: another process has other bytes", set, format)
			}
		}
	}
	before := w.manifest(t, "agents", export.Parquet, 0)
	w.add(t, repute.URIUpdated{TokenID: token(0), URI: "https://b.example", UpdatedBy: addr(10)})
	w.finalize(t, w.tip.Number)
	third := &world{db: openDB(t, w.url), chain: w.chain}
	third.server = serve(t, third.db)
	third.files(t, before)
	if now := w.manifest(t, "agents", export.Parquet, 0); now.Block != before.Block+1 ||
		now.Parts[0].SHA256 == before.Parts[0].SHA256 {
		t.Errorf("the newest state is that of block %d", now.Block)
	}
}

// A part is put together from ranges, and a range of other bytes is never given.
func TestRanges(t *testing.T) {
	t.Parallel()
	w := seeded(t)
	p := w.manifest(t, "feedback", export.NDJSON, 0).Parts[0]
	whole := w.files(t, export.SetManifest{Parts: []export.SetPart{p}, Block: w.tip.Number})[0]
	rapid.Check(t, func(t *rapid.T) {
		cut := rapid.IntRange(1, len(whole)-1).Draw(t, "cut")
		res, rest := get(t, w.server, p.URL, "Range", fmt.Sprintf("bytes=%d-", cut), "If-Range", `"`+p.SHA256+`"`)
		if res.StatusCode != http.StatusPartialContent || !bytes.Equal(rest, whole[cut:]) {
			t.Fatalf("%d, %d bytes", res.StatusCode, len(rest))
		}
	})
	if res, body := get(t, w.server, p.URL, "Range", "bytes=5-", "If-Range",
		`"other"`); res.StatusCode != http.StatusOK ||
		!bytes.Equal(body, whole) {
		t.Errorf("a range of something else: %d", res.StatusCode)
	}
	if res, _ := get(t, w.server, p.URL, "If-None-Match", `"`+p.SHA256+`"`); res.StatusCode != http.StatusNotModified {
		t.Errorf("a part that the caller has: %d", res.StatusCode)
	}
}

// The stream of a whole set is its parts.
func TestWholeIsItsParts(t *testing.T) {
	t.Parallel()
	w := seeded(t)
	res, body := get(t, w.server, fmt.Sprintf("/export/feedback?chainId=%d", w.chain.ID))
	parts := w.files(t, w.manifest(t, "feedback", export.NDJSON, 0))
	if !bytes.Equal(body, bytes.Join(parts, nil)) || res.Header.Get("Accept-Ranges") != "none" ||
		res.Header.Get("Repute-Block") != fmt.Sprint(w.tip.Number) {
		t.Errorf("%d bytes, %v", len(body), res.Header)
	}
	_, body = get(t, w.server, fmt.Sprintf("/export/agents?chainId=%d&format=parquet", w.chain.ID))
	if rows, err := parquet.Read[exportdb.Agent](bytes.NewReader(body), int64(len(body))); err != nil ||
		len(rows) != 60 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}

// What changed below the block makes the part 410, and a new manifest works.
func TestChangedPartIsGone(t *testing.T) {
	t.Parallel()
	w := seeded(t)
	agents, events := w.manifest(t, "agents", export.NDJSON, 0), w.manifest(t, "events", export.NDJSON, 0)
	if _, err := w.db.Pool().Exec(t.Context(),
		"update uris set uri = 'https://c.example' where uri like '%a.example/file%'"); err != nil {
		t.Fatal(err)
	}
	res, body := get(t, w.server, agents.Parts[0].URL)
	var problem struct{ Code, Hint string }
	if ok(t, json.Unmarshal(body, &problem)); res.StatusCode != http.StatusGone || problem.Code != "gone" ||
		!strings.Contains(problem.Hint, "/export/agents/manifest") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
	w.files(t, events) // which did not change
	if now := w.manifest(t, "agents", export.NDJSON, 0); now.Parts[0].SHA256 == agents.Parts[0].SHA256 {
		t.Error("the new manifest is the old one")
	}
	// A chain that is indexed anew has not reached the block yet.
	w.finalize(t, 2)
	if _, err := w.db.Pool().Exec(t.Context(), "update chains set cursor_block = 2"); err != nil {
		t.Fatal(err)
	}
	if res, body := get(t, w.server, events.Parts[0].URL); res.StatusCode != http.StatusGone {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// The content of data: URIs of a denied agent is neither in its row nor in its events.
func TestDeniedContentIsWithheld(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const secret = "data:application/json,SECRET"
	w.add(t, w.mint(secret, 10)...)
	w.add(t, w.mint("data:application/json,PLAIN", 10)...)
	w.finalize(t, w.tip.Number)
	err := denydb.Deny(t.Context(), w.db, repute.Denial{Kind: repute.DenyAgent, Value: fmt.Sprintf("%d:0", w.chain.ID),
		Reason: "test"}, false)
	ok(t, err)
	for _, set := range []string{"agents", "events"} {
		_, body := get(t, w.server, fmt.Sprintf("/export/%s?chainId=%d", set, w.chain.ID))
		if hexed := hex.EncodeToString([]byte("SECRET")); bytes.Contains(body, []byte("SECRET")) ||
			bytes.Contains(body, []byte(hexed)) {
			t.Errorf("%s shows what is denied: %s", set, body)
		}
		if hexed := hex.EncodeToString([]byte("PLAIN")); !bytes.Contains(body, []byte("PLAIN")) &&
			!bytes.Contains(body, []byte(hexed)) {
			t.Errorf("%s withholds what is not denied: %s", set, body)
		}
	}
}

// Wrong requests name the parameter and what is right.
func TestExportChecksParameters(t *testing.T) {
	t.Parallel()
	w := seeded(t)
	for path, want := range map[string]int{
		"/export/agents?chainId=8453&block=99":                                       400, // not final
		"/export/agents?chainId=8453&format=csv":                                     400,
		"/export/agents?chainId=8453&after=x":                                        400,
		"/export/events?chainId=8453&after=1-x":                                      400,
		"/export/feedback?chainId=8453&to=1/2":                                       400,
		"/export/changes?chainId=8453&to=1":                                          400,
		"/export/agents":                                                             400,
		"/export/agents?chainId=8453&nonsense=1":                                     400,
		"/export/agents?chainId=1":                                                   404,
		"/export/nothing?chainId=8453":                                               404,
		"/export/scores?chainId=8453&run=7":                                          410,
		"/export/agents?chainId=8453&sha256=" + strings.Repeat("0", 64):              400, // without a block
		"/export/agents?chainId=8453&block=4&to=1&sha256=" + strings.Repeat("0", 64): 410,
	} {
		if res, body := get(t, w.server, path); res.StatusCode != want ||
			!bytes.Contains(body, []byte(`"hint"`)) && want != 410 {
			t.Errorf("%s: %d %s, want %d", path, res.StatusCode, body, want)
		}
	}
}

// fill stores agents 0 to n-1 directly, all registered in block 1.
func (w *world) fill(t failer, n int) {
	t.Helper()
	ctx := context.Background()
	w.add(t)
	for _, sql := range []string{
		`insert into agent_states (chain_id, token_id, from_block, owner, claimed, wallet, approved, uri_id)
			select $1, n, 1, decode(lpad(to_hex(n % 97), 40, '0'), 'hex'), false, '', '', $3 from generate_series(0, $2::int - 1) n`,
		`insert into agents (chain_id, token_id, owner, claimed, wallet, approved, uri_id, registered_block, registered_log, updated_block, updated_log)
			select $1, n, decode(lpad(to_hex(n % 97), 40, '0'), 'hex'), false, '', '', $3, 1, n, 1, n from generate_series(0, $2::int - 1) n`,
	} {
		var uri int64
		ok(t,
			w.db.Pool().QueryRow(ctx,
				`insert into uris (hash, uri, kind, host) values (sha256('x'), 'x', 'unsupported', '')
			on conflict (hash) do update set uri = excluded.uri returning id`).Scan(&uri))
		_, err := w.db.Pool().Exec(ctx, sql, int64(w.chain.ID), n, uri)
		ok(t, err)
	}
	w.finalize(t, 1)
}

// Parts end at their bounds, follow each other without a hole, and have every row once.
func TestPartsFollowEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := exportdb.PartRows + 5000
	w.fill(t, n)
	m := w.manifest(t, "agents", export.Parquet, 0)
	if len(m.Parts) != 2 || m.Rows != int64(n) || m.Parts[0].Rows != exportdb.PartRows ||
		m.Parts[1].After != m.Parts[0].To {
		t.Fatalf("%+v", m)
	}
	next := 0
	for _, file := range w.files(t, m) {
		rows, err := parquet.Read[exportdb.Agent](bytes.NewReader(file), int64(len(file)))
		ok(t, err)
		for _, r := range rows {
			if r.TokenID != fmt.Sprint(next) {
				t.Fatalf("row %d is agent %s", next, r.TokenID)
			}
			next++
		}
	}
	if next != n {
		t.Errorf("%d rows, want %d", next, n)
	}
}

// Long texts end a part too, so that a part never outgrows memory.
func TestLongTextsEndParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := strings.Repeat("x", exportdb.PartText/4)
	for i := range 6 {
		w.add(t, w.mint(fmt.Sprint("https://a.example/", i, long), 10)...)
	}
	w.finalize(t, w.tip.Number)
	m := w.manifest(t, "agents", export.NDJSON, 0)
	if len(m.Parts) != 2 || m.Rows != 6 || m.Parts[0].Rows != 4 {
		t.Errorf("%d parts of %d rows, the first has %d", len(m.Parts), m.Rows, m.Parts[0].Rows)
	}
	w.files(t, m)
}
