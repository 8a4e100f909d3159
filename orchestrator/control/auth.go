package control

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/internal/httpapi"
)

var errWrongToken = fmt.Errorf("the bearer token is not known: %w", httpapi.ErrUnauthorized)

// Bounds of tokens and their names, in bytes.
const (
	minToken     = 16
	maxTokenName = 40
)

// token is a caller's proof, kept as a hash.
type token struct {
	name  string
	hash  [sha256.Size]byte
	roles []role // nil: all
}

// readTokens refuses tokens that can be guessed.
func readTokens(tokens map[string]string) (out []token, err error) {
	for name, text := range tokens {
		if name == "" || len(name) > maxTokenName ||
			strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' || r == '/' }) {
			return nil, repute.Invalid("orchestrator.tokens", fmt.Sprintf("%.60q is no name", name),
				fmt.Sprintf("1 to %d printable characters without blanks and slashes", maxTokenName))
		}
		if len(text) < minToken {
			return nil, repute.Invalid("orchestrator.tokens."+name, "is too short",
				fmt.Sprintf("at least %d characters that nobody guesses", minToken))
		}
		out = append(out, token{name: name, hash: sha256.Sum256([]byte(text))})
	}
	slices.SortFunc(out, func(a, b token) int { return strings.Compare(a.name, b.name) })
	return out, nil
}

// authenticate finds out who asks. Routes that change something demand a name.
func (c *Control) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(e echo.Context) error {
		a := &about{denied: httpapi.ErrUnauthorized}
		e.SetRequest(e.Request().WithContext(context.WithValue(e.Request().Context(), aboutKey{}, a)))
		scheme, text, _ := strings.Cut(e.Request().Header.Get("Authorization"), " ")
		if key := e.Request().Header.Get("X-API-Key"); text == "" && key != "" { // as plugins of chats send it
			scheme, text = "bearer", key
		}
		if text == "" || !strings.EqualFold(scheme, "bearer") {
			return next(e)
		}
		if a.token = c.tokenOf(strings.TrimSpace(text)); a.token == nil {
			a.denied = errWrongToken
		} else {
			a.by, a.denied = a.token.name, nil
		}
		return next(e)
	}
}

// tokenOf takes the same time for every token; nil: it is none.
func (c *Control) tokenOf(text string) (found *token) {
	sum := sha256.Sum256([]byte(text))
	for i := range c.tokens {
		if subtle.ConstantTimeCompare(sum[:], c.tokens[i].hash[:]) == 1 {
			found = &c.tokens[i]
		}
	}
	return found
}

// by is the name of whoever changes something, or why that is refused.
func by(ctx context.Context) (string, error) {
	a := aboutOf(ctx)
	return a.by, a.denied
}
