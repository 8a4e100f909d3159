package orchestrator

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// errRuntime marks errors of the orchestrator's own database.
var errRuntime = errors.New("the orchestrator could not go on")

// mustJSON encodes values that can be encoded.
func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

// digest returns the sha256 of parts in hex. Each part is preceded by its length, so that other
// parts never give the same bytes.
func digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// bounded keeps large requests out of the journal.
func bounded(request json.RawMessage) json.RawMessage {
	if len(request) > 64<<10 {
		return mustJSON(map[string]any{"bytes": len(request), "sha256": digest(request)})
	}
	return request
}

// replayed is the error of a call that was made before.
func replayed(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// attemptKey is the key of a transaction that an attempt of a run journals. The first
// attempt's is the call's own.
func attemptKey(attempt int, key string) string {
	if attempt <= 1 {
		return key
	}
	return fmt.Sprintf("attempt %d/%s", attempt, key)
}

// ofAttempt tells whether an attempt journaled a transaction. The key of an agent stands
// behind a phase: it cannot look like one of another attempt.
func ofAttempt(attempt int, key string) bool {
	if attempt <= 1 {
		return !strings.HasPrefix(key, "attempt ")
	}
	return strings.HasPrefix(key, attemptKey(attempt, ""))
}

// shorten bounds a text that is stored with a phase, in bytes.
func shorten(s string) string {
	if len(s) > 4000 {
		return s[:4000] + "…"
	}
	return s
}

// newID makes a name that sorts by time and that nobody guesses.
func newID(kind string) string {
	var b [16]byte
	ms := uint64(time.Now().UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	rand.Read(b[6:]) // never fails
	return kind + "_" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
