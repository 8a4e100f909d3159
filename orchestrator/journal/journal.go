package journal

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

// ErrRuntime marks errors of the orchestrator's own database.
var ErrRuntime = errors.New("the orchestrator could not go on")

// JSON encodes values that can be encoded.
func JSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}

// Digest returns the sha256 of parts in hex. Each part is preceded by its length, so that other
// parts never give the same bytes.
func Digest(parts ...[]byte) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:", len(p))
		h.Write(p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Bounded keeps large requests out of the journal.
func Bounded(request json.RawMessage) json.RawMessage {
	if len(request) > 64<<10 {
		return JSON(map[string]any{"bytes": len(request), "sha256": Digest(request)})
	}
	return request
}

// Replayed is the error of a call that was made before.
func Replayed(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// AttemptKey is the key of a transaction that an attempt of a run journals. The first
// attempt's is the call's own.
func AttemptKey(attempt int, key string) string {
	if attempt <= 1 {
		return key
	}
	return fmt.Sprintf("attempt %d/%s", attempt, key)
}

// OfAttempt tells whether an attempt journaled a transaction. The key of an agent stands
// behind a phase: it cannot look like one of another attempt.
func OfAttempt(attempt int, key string) bool {
	if attempt <= 1 {
		return !strings.HasPrefix(key, "attempt ")
	}
	return strings.HasPrefix(key, AttemptKey(attempt, ""))
}

// Shorten bounds a text that is stored with a phase, in bytes.
func Shorten(s string) string {
	if len(s) > 4000 {
		return strings.ToValidUTF8(s[:4000], "") + "…"
	}
	return s
}

// NewID makes a name that sorts by time and that nobody guesses.
func NewID(kind string) string {
	var b [16]byte
	ms := uint64(time.Now().UnixMilli())
	for i := range 6 {
		b[i] = byte(ms >> (40 - 8*i))
	}
	rand.Read(b[6:]) // never fails
	return kind + "_" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(b[:]))
}
