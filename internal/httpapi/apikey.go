package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"repute"
)

// KeyPrefix begins the text of every API key, so that keys differ from tokens and are found where they were published
// by mistake.
const KeyPrefix = "rpk_"

// Scopes of API keys.
const (
	ScopeRead   = "read"   // all routes but exports
	ScopeExport = "export" // the routes of exports
)

// APIKey is what an API key allows its caller. It gives no rights, only a limit of its own.
type APIKey struct {
	Name   string
	Rate   int // requests per second
	Scopes []string
}

// quota returns the limit of the key. The burst is four seconds of it, as for addresses.
func (k *APIKey) quota() Quota { return Quota{float64(k.Rate), 4 * k.Rate} }

// has reports whether the key may be used for routes of a scope.
func (k *APIKey) has(scope string) bool { return slices.Contains(k.Scopes, scope) }

// scopeOf returns the scope of a route.
func scopeOf(route string) string {
	if strings.HasPrefix(route, "/export/") {
		return ScopeExport
	}
	return ScopeRead
}

// KeySource finds API keys.
type KeySource interface {
	// Find returns the key whose text has a sha256. repute.ErrNotFound: there is none, or it was revoked or has
	// expired.
	Find(ctx context.Context, hash [sha256.Size]byte) (APIKey, error)
}

// keyIn returns the API key that a request carries, as bearer token or in X-API-Key. The header Authorization wins
// where both have a key.
func keyIn(r *http.Request) string {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if text = strings.TrimSpace(text); strings.EqualFold(scheme, "bearer") && strings.HasPrefix(text, KeyPrefix) {
		return text
	}
	if text = r.Header.Get("X-API-Key"); strings.HasPrefix(text, KeyPrefix) {
		return text
	}
	return ""
}

const (
	// keyLife is how long this process believes what it read of a key: a revoked one works for so long.
	keyLife = 5 * time.Second
	// keyWait bounds the reading of a key.
	keyWait = 2 * time.Second
	// maxKeys bounds the kept keys, also those that do not exist.
	maxKeys = 10_000
)

// keyring keeps the keys that were used last, by the hash of their text. Keys that do not exist are kept as well, so
// that a wrong key in a loop costs one read in keyLife.
type keyring struct {
	source KeySource
	mu     sync.Mutex
	kept   map[[sha256.Size]byte]keptKey
}

// keptKey is a key as it was read.
type keptKey struct {
	key   *APIKey // nil: there is none
	until time.Time
}

// newKeyring returns a keyring over a source; nil without one.
func newKeyring(source KeySource) *keyring {
	if source == nil {
		return nil
	}
	return &keyring{source: source, kept: map[[sha256.Size]byte]keptKey{}}
}

// peek returns what is kept of a key: nil where it is known that there is none.
func (k *keyring) peek(text string) (key *APIKey, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept, found := k.kept[sha256.Sum256([]byte(text))]
	return kept.key, found && time.Now().Before(kept.until)
}

// find reads a key and keeps the outcome. It returns nil where there is no such key. The lock is not held while the
// source is read: two requests with a new key may both read it. When the ring is full it is emptied, which costs each
// caller one read.
func (k *keyring) find(ctx context.Context, text string) (*APIKey, error) {
	ctx, cancel := context.WithTimeout(ctx, keyWait)
	defer cancel()
	hash := sha256.Sum256([]byte(text))
	var key *APIKey
	switch found, err := k.source.Find(ctx, hash); {
	case err == nil:
		key = &found
	case !errors.Is(err, repute.ErrNotFound):
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.kept) >= maxKeys {
		clear(k.kept)
	}
	k.kept[hash] = keptKey{key, time.Now().Add(keyLife)}
	return key, nil
}
