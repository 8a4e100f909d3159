package api_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/crypto"

	"repute/api"
	"repute/api/wire"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/trust/statement"
)

// finalScore stores a final score of agent 0 as the engine does.
func finalScore(t *testing.T, db *store.DB, chainID, block uint64) {
	t.Helper()
	h := bytes.Repeat([]byte{7}, 32)
	_, err := db.Pool().Exec(t.Context(), `
		insert into trust_runs (chain_id, run, epoch, boundary, block, block_hash, block_time, scorer, params, tags,
			roots, links, weights, identities, edges, closed_at, verified_to)
		values ($1, 1, 1, $2, $2, $3, now(), 'repute/1', $3, $3, $3, $3, $3, 0, 0, now(), $2)`, chainID, block, h)
	if err == nil {
		_, err = db.Pool().Exec(t.Context(), `
			insert into trust_finals (chain_id, token_id, run, evidence, status, score, low, high, mean, confidence, tier,
				facts, result)
			values ($1, 0, 1, $2, 'rated', 49400, 31000, 66000, 49400, 640000, 2, $2, '{}')`, chainID, h)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// signs is a signer whose statements hold for so long.
func signs(t *testing.T, hold time.Duration) *statement.Signer {
	t.Helper()
	key, err := crypto.ToECDSA(bytes.Repeat([]byte{3}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return statement.NewSigner(key, hold, time.Time{}, nil)
}

// A final score comes signed to who asks, and verifies against the published keys.
func TestSigned(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := populate(t, db)
	s := serve(t, api.Options{DB: db, Signer: signs(t, time.Hour)})
	if p := problemOf(t, get(t, s, "/agents/8453:0/reputation?signed=1")); p.Status != 400 ||
		!strings.Contains(p.Detail, "finalized") {
		t.Errorf("nothing is final: %+v", p)
	}
	if err := chaindb.SetHead(t.Context(), db, 8453, store.Lease{},
		chaindb.Head{Head: l.tip.Number, Safe: 3, Finalized: 3, SeenAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"signed=1": 409, "signed=2": 400, "signed=1&at=latest": 400,
		"signed=1&at=safe": 400, "signed=1&at=2": 400, "signed=1&at=3": 400} {
		if p := problemOf(t, get(t, s, "/agents/8453:0/reputation?"+path)); p.Status != want {
			t.Errorf("%s: %+v", path, p)
		}
	}
	finalScore(t, db, 8453, 2)
	var keys statement.KeyList
	if err := json.Unmarshal(get(t, s, "/.well-known/repute-keys.json").body, &keys); err != nil ||
		len(keys.Keys) != 1 {
		t.Fatalf("keys: %+v, %v", keys, err)
	}
	first := get(t, s, "/agents/8453:0/reputation?signed=1")
	answer := as[wire.ReputationAnswer](t, first)
	if answer.Signed == nil || answer.AsOf.Finality != "finalized" {
		t.Fatalf("%s", first.body)
	}
	if caching := first.header.Get("Cache-Control"); !strings.Contains(caching, "no-cache") {
		t.Errorf("a statement ends at a time of its own, but may be reused: %s", caching)
	}
	if r := get(t, s, "/agents/8453:0/reputation?signed=1", "If-None-Match",
		first.header.Get("ETag")); r.status != 304 {
		again := as[wire.ReputationAnswer](t, r)
		if again.Signed.IssuedAt.Equal(answer.Signed.IssuedAt) { // else a new quarter of the statement's life began
			t.Errorf("the same statement again: %d", r.status)
		}
	}
	signed := answer.Signed.Signed
	if err := statement.Verify(signed, keys.Keys, time.Now()); err != nil {
		t.Error(err)
	}
	if signed.Score != 49_400 || signed.Block.Number != 2 || signed.Agent.String() != string(answer.Agent) ||
		signed.Tier != 2 {
		t.Errorf("%+v", signed.Statement)
	}
	if again := as[wire.ReputationAnswer](t,
		get(t, s, "/agents/8453:0/reputation?signed=true&at=finalized")); again.Signed.Score != 49_400 {
		t.Errorf("asked by name: %+v", again.Signed)
	}
	if plain := get(t, s, "/agents/8453:0/reputation?signed=0"); strings.Contains(string(plain.body), "signature") {
		t.Errorf("not asked for: %s", plain.body)
	}
	if _, err := db.Pool().Exec(t.Context(), // the chain grows, and the engine makes no new scores
		"update chains set cursor_block = 20, head_block = 20, finalized_block = 10 where chain_id = 8453"); err != nil {
		t.Fatal(err)
	}
	if p := problemOf(t, get(t, s, "/agents/8453:0/reputation?signed=1")); p.Status != 409 ||
		!strings.Contains(p.Detail, "scores are behind") {
		t.Errorf("an old run: %+v", p)
	}
}

// What is signed must be known to hold now: not where the indexer or the engine stands
// still, or no epoch has ended.
func TestStaleScoresAreNotSigned(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := populate(t, db)
	finalScore(t, db, 8453, 2)
	s := serve(t, api.Options{DB: db, Signer: signs(t, time.Hour)})
	for _, c := range []struct {
		name, sql string
		seen      time.Duration // ago
		status    int
		want      string
	}{
		{"guarded", `update trust_finals set result = '{"guard":{"agent":"eip155:8453:0x1:1"}}'`, 0, 200,
			`"guarded":true`},
		{"followed", "update trust_finals set result = '{}'", 0, 200, `"guarded":false`},
		{"the head was seen a while ago", "update trust_runs set epoch = 1", 14 * time.Minute, 200, ""},
		{"the head was not seen for long", "update trust_runs set epoch = 1", 16 * time.Minute, 409,
			"head was last seen at"},
		{"no epoch has ended", "update trust_runs set epoch = 0", 0, 409, "no epoch of the chain has ended"},
		{"no epoch has ended since the start", "update trust_runs set epoch = 1, boundary = 0", 0, 409,
			"no epoch of the chain has ended"},
		{"no run is closed", "update trust_runs set closed_at = null", 0, 409, "no final score"},
	} {
		if _, err := db.Pool().Exec(t.Context(), c.sql); err != nil {
			t.Fatal(err)
		}
		if err := chaindb.SetHead(t.Context(), db, 8453, store.Lease{},
			chaindb.Head{Head: l.tip.Number, Safe: 3, Finalized: 3, SeenAt: time.Now().Add(-c.seen)}); err != nil {
			t.Fatal(err)
		}
		r := get(t, s, "/agents/8453:0/reputation?signed=1")
		if r.status != c.status || !strings.Contains(string(r.body), c.want) ||
			(r.status == 200) != strings.Contains(string(r.body), "signature") {
			t.Errorf("%s: %d %.400s", c.name, r.status, r.body)
		}
	}
}

// A statement that is a new one is not taken for the one that the caller has.
func TestSignedAnewIsNotTheSame(t *testing.T) {
	t.Parallel()
	db := open(t, pgtest.New(t))
	l := populate(t, db)
	if err := chaindb.SetHead(t.Context(), db, 8453, store.Lease{},
		chaindb.Head{Head: l.tip.Number, Safe: 3, Finalized: 3, SeenAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	finalScore(t, db, 8453, 2)
	s := serve(t, api.Options{DB: db, Signer: signs(t, 4*time.Second)})
	first := get(t, s, "/agents/8453:0/reputation?signed=1")
	issued := as[wire.ReputationAnswer](t, first).Signed.IssuedAt
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r := get(t, s, "/agents/8453:0/reputation?signed=1", "If-None-Match", first.header.Get("ETag"))
		if r.status == 304 {
			continue
		}
		if again := as[wire.ReputationAnswer](t, r).Signed; !again.IssuedAt.After(issued) ||
			!again.ExpiresAt.After(time.Now()) {
			t.Errorf("issued at %s, then at %s until %s", issued, again.IssuedAt, again.ExpiresAt)
		}
		return
	}
	t.Error("the first statement stays")
}

// Without a key nothing is signed, and the list of keys is empty.
func TestUnsigned(t *testing.T) {
	t.Parallel()
	s, l := populated(t, api.Options{})
	if err := chaindb.SetHead(t.Context(), l.db, 8453, store.Lease{},
		chaindb.Head{Head: l.tip.Number, Safe: 3, Finalized: 3, SeenAt: time.Now()}); err != nil {
		t.Fatal(err)
	}
	if p := problemOf(t, get(t, s, "/agents/8453:0/reputation?signed=1")); p.Status != 409 ||
		!strings.Contains(p.Detail, "signing.key") {
		t.Errorf("%+v", p)
	}
	if r := get(t, s, "/.well-known/repute-keys.json"); r.status != 200 || string(r.body) != `{"keys":[]}` {
		t.Errorf("%d %s", r.status, r.body)
	}
}
