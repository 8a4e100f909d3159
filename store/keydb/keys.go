// Package keydb stores the API keys of callers. Only the sha256 of a key is stored; its text is returned once, by Add,
// so that neither a copy of the database nor an operator can use a key. A text has 256 random bits, which is why a
// plain hash protects it.
//
// A key has scopes and a rate, which its callers' requests are checked against. It works until it expires or is
// revoked. Neither can be undone, and its name is never given again, because logs have it. Find is asked with each
// request: it writes at most once a day, to store on which day the key was last used.
//
// Tables: api_keys.
package keydb

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/column"
)

// Prefix begins the text of every key.
const Prefix = "rpk_"

// secretBytes is how many random bytes a key has.
const secretBytes = 32

// maxRate is the highest rate of a key, in requests per second. It MUST equal the check of the table.
const maxRate = 100_000

// scopes returns what a key can be for: reading, and whole sets.
func scopes() []string { return []string{"read", "export"} }

// Key is an API key without its text.
type Key struct {
	Name   string
	Scopes []string
	// Rate is the number of requests per second.
	Rate int
	// Expires is when the key stops working; nil for never.
	Expires *time.Time
	Created time.Time
	// Revoked is when an operator revoked it; nil while it works.
	Revoked *time.Time
	// LastUsed is the day, in UTC, on which it was used last; nil before the first use.
	LastUsed *time.Time
}

// check returns repute.ErrInvalid for a key that cannot be made.
func (k Key) check() error {
	switch {
	case !regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`).MatchString(k.Name):
		return repute.Invalid("name", fmt.Sprintf("%.60q is no name of a key", k.Name),
			"1 to 40 of a-z, 0-9, dot, underscore and dash; a letter or digit first")
	case len(k.Scopes) == 0:
		return repute.Invalid("scopes", "are missing", fmt.Sprintf("one or more of %v", scopes()))
	case k.Rate < 1 || k.Rate > maxRate:
		return repute.Invalid("rate", fmt.Sprintf("%d is out of range", k.Rate),
			fmt.Sprintf("1 to %d requests per second",
				maxRate))
	case k.Expires != nil && time.Until(*k.Expires) <= 0:
		return repute.Invalid("expires", "is in the past", "a later time, or none for a key that never expires")
	}
	for _, s := range k.Scopes {
		if !slices.Contains(scopes(), s) {
			return repute.Invalid("scopes", fmt.Sprintf("%.40q is no scope", s),
				fmt.Sprintf("one or more of %v", scopes()))
		}
	}
	return nil
}

// Add makes a key and returns its text. repute.ErrConflict when the name is in use, also by a revoked key: its name
// stays in logs.
func Add(ctx context.Context, db *store.DB, k Key) (text string, err error) {
	if err := k.check(); err != nil {
		return "", err
	}
	secret := make([]byte, secretBytes)
	rand.Read(secret) // which never fails
	text = Prefix + hex.EncodeToString(secret)
	hash := sha256.Sum256([]byte(text))
	slices.Sort(k.Scopes)
	tag, err := db.Pool().Exec(ctx, `
		insert into api_keys (name, hash, scopes, rate, expires_at) values ($1, $2, $3, $4, $5) on conflict (name) do nothing`,
		k.Name, hash[:], slices.Compact(k.Scopes), k.Rate, k.Expires)
	if err != nil {
		return "", store.Failed("add API key", err)
	}
	if tag.RowsAffected() == 0 {
		return "", repute.Conflict("an API key has the name %s already: choose another one", k.Name)
	}
	return text, nil
}

// columns are those that scan reads.
const columns = "name, scopes, rate, expires_at, created_at, revoked_at, last_used"

// scan reads a row of columns.
func scan(row pgx.CollectableRow) (k Key, err error) {
	err = row.Scan(&k.Name, &k.Scopes, &k.Rate, &k.Expires, &k.Created, &k.Revoked, &k.LastUsed)
	for _, t := range []**time.Time{&k.Expires, &k.Revoked, &k.LastUsed} {
		if *t != nil {
			utc := (*t).UTC()
			*t = &utc
		}
	}
	k.Created = k.Created.UTC()
	return k, err
}

// List returns all keys by name, also those that no longer work.
func List(ctx context.Context, db *store.DB) ([]Key, error) {
	rows, _ := db.Pool().Query(ctx, "select "+columns+" from api_keys order by name")
	keys, err := pgx.CollectRows(rows, scan)
	return keys, store.Failed("list API keys", err)
}

// Revoke makes a key stop working. A second time it changes nothing. repute.ErrNotFound for an unknown name.
func Revoke(ctx context.Context, db *store.DB, name string) (k Key, err error) {
	rows, _ := db.Pool().Query(ctx, `
		update api_keys set revoked_at = coalesce(revoked_at, now()) where name = $1 returning `+columns, column.CleanText(name))
	k, err = pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, repute.Missing("API key %.60q", name)
	}
	return k, store.Failed("revoke API key", err)
}

// Find returns the key with a hash, and stores that it is used today. repute.ErrNotFound where there is none that
// works.
func Find(ctx context.Context, db *store.DB, hash [sha256.Size]byte) (k Key, err error) {
	rows, _ := db.Pool().Query(ctx, "select "+columns+` from api_keys
		where hash = $1 and revoked_at is null and (expires_at is null or expires_at > now())`, hash[:])
	k, err = pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return k, repute.ErrNotFound
	}
	if err != nil {
		return k, store.Failed("find API key", err)
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	if k.LastUsed == nil || k.LastUsed.Before(today) {
		_, err = db.Pool().Exec(ctx, `update api_keys set last_used = $2
			where name = $1 and (last_used is null or last_used < $2)`, k.Name, today)
	}
	return k, store.Failed("note the use of an API key", err)
}
