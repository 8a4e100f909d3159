package keydb_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
	"time"

	"repute"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/keydb"
)

func openDB(t *testing.T) *store.DB {
	t.Helper()
	db, err := store.Open(context.Background(), pgtest.New(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// A key works from when it is made until it is revoked or expires, and only its hash is stored.
func TestKeys(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), openDB(t)
	text, err := keydb.Add(ctx, db, keydb.Key{Name: "acme", Scopes: []string{"read", "export", "read"}, Rate: 500})
	if err != nil || !strings.HasPrefix(text, keydb.Prefix) || len(text) != len(keydb.Prefix)+64 {
		t.Fatalf("%q, %v", text, err)
	}
	found, err := keydb.Find(ctx, db, sha256.Sum256([]byte(text)))
	if err != nil || found.Name != "acme" || found.Rate != 500 || len(found.Scopes) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	if _, err := keydb.Find(ctx, db, sha256.Sum256([]byte(text+"0"))); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("another key: %v", err)
	}
	var stored int
	if err := db.Pool().QueryRow(ctx, "select count(*) from api_keys k where k::text like '%' || $1 || '%'",
		text[4:]).Scan(&stored); err != nil || stored != 0 {
		t.Errorf("the text of the key is stored: %d, %v", stored, err)
	}
	list, err := keydb.List(ctx, db)
	if err != nil || len(list) != 1 || list[0].LastUsed == nil || time.Since(*list[0].LastUsed) > 48*time.Hour {
		t.Errorf("%+v, %v", list, err)
	}
	if k, err := keydb.Revoke(ctx, db, "acme"); err != nil || k.Revoked == nil {
		t.Errorf("%+v, %v", k, err)
	}
	if _, err := keydb.Find(ctx, db, sha256.Sum256([]byte(text))); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("a revoked key: %v", err)
	}
}

func TestKeysExpire(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), openDB(t)
	in := time.Now().Add(time.Hour)
	text, err := keydb.Add(ctx, db, keydb.Key{Name: "short", Scopes: []string{"read"}, Rate: 1, Expires: &in})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := keydb.Find(ctx, db, sha256.Sum256([]byte(text))); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool().Exec(ctx, "update api_keys set expires_at = now()"); err != nil {
		t.Fatal(err)
	}
	if _, err := keydb.Find(ctx, db, sha256.Sum256([]byte(text))); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("an expired key: %v", err)
	}
}

func TestKeysAreChecked(t *testing.T) {
	t.Parallel()
	ctx, db := t.Context(), openDB(t)
	past, good := time.Now().Add(-time.Hour), keydb.Key{Name: "a", Scopes: []string{"read"}, Rate: 10}
	for field, change := range map[string]func(*keydb.Key){
		"name":    func(k *keydb.Key) { k.Name = "A b" },
		"scopes":  func(k *keydb.Key) { k.Scopes = []string{"write"} },
		"rate":    func(k *keydb.Key) { k.Rate = 0 },
		"expires": func(k *keydb.Key) { k.Expires = &past },
	} {
		k := good
		change(&k)
		var wrong *repute.InputError
		if _, err := keydb.Add(ctx, db, k); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := keydb.Add(ctx, db, good); err != nil {
		t.Fatal(err)
	}
	if _, err := keydb.Add(ctx, db, good); !errors.Is(err, repute.ErrConflict) {
		t.Errorf("the same name: %v", err)
	}
	if _, err := keydb.Revoke(ctx, db, "b"); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("an unknown name: %v", err)
	}
}
