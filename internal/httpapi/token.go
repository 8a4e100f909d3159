package httpapi

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"repute"
)

// Role is a right of a token.
type Role string

// Roles of tokens. Every token may read.
const (
	RoleAsk     Role = "ask"     // for tasks: submit, cancel, try again
	RoleApprove Role = "approve" // approve what the policy leaves to a person
	RoleOperate Role = "operate" // agents, identities, feedback, calls and transfers by the treasury, job queue
	RoleOwn     Role = "own"     // change the treasury's rules: operators, caps, allow-lists, relayers
	RoleRead    Role = "read"    // and nothing else
)

// roleNames lists the roles that a configuration may name.
func roleNames() []string {
	return []string{string(RoleAsk), string(RoleApprove), string(RoleOperate), string(RoleOwn), string(RoleRead)}
}

// Bounds of tokens and their names, in bytes.
const (
	minToken     = 16
	maxTokenName = 40
)

// Token identifies a caller; only its hash is stored.
type Token struct {
	Name  string
	hash  [sha256.Size]byte
	roles []Role // nil: all
}

// ReadTokens gives tokens, by name, their roles; one that none are named for has all. repute.ErrInvalid
// names the key of the configuration: a name or role that is none, or a token that can be guessed.
func ReadTokens(tokens map[string]string, roles map[string][]string) (out []Token, err error) {
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
		out = append(out, Token{Name: name, hash: sha256.Sum256([]byte(text))})
	}
	slices.SortFunc(out, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return out, readRoles(out, roles)
}

// readRoles sets the configured roles of tokens.
func readRoles(tokens []Token, roles map[string][]string) error {
	for name, list := range roles {
		at := slices.IndexFunc(tokens, func(t Token) bool { return t.Name == name })
		if at < 0 {
			return repute.Invalid("orchestrator.roles."+name, "is of no token", "a name of orchestrator.tokens")
		}
		tokens[at].roles = []Role{}
		for _, r := range list {
			if !slices.Contains(roleNames(), r) {
				return repute.Invalid("orchestrator.roles."+name, fmt.Sprintf("%.40q is no role", r),
					"a list of "+strings.Join(roleNames(), ", "))
			}
			tokens[at].roles = append(tokens[at].roles, Role(r))
		}
		if len(list) == 0 {
			return repute.Invalid("orchestrator.roles."+name, "is empty",
				"a list of "+strings.Join(roleNames(), ", ")+", or no entry: the token has all")
		}
	}
	return nil
}

// May returns ErrForbidden unless the token has all of the roles.
func (t *Token) May(needed ...Role) error {
	for _, r := range needed {
		if t.roles != nil && r != RoleRead && !slices.Contains(t.roles, r) {
			return &refusal{ErrForbidden, fmt.Sprintf("the token %q lacks the role %q", t.Name, r),
				"ask with a token that has it, or add it under orchestrator.roles"}
		}
	}
	return nil
}

// TokenOf returns the token with a text, in constant time; nil if there is none. It compares with all tokens, also
// after one was found.
func (s *Server) TokenOf(text string) (found *Token) {
	sum := sha256.Sum256([]byte(text))
	for i := range s.tokens {
		if subtle.ConstantTimeCompare(sum[:], s.tokens[i].hash[:]) == 1 {
			found = &s.tokens[i]
		}
	}
	return found
}

// HasTokens reports whether anybody has a token that may do something of a role.
func (s *Server) HasTokens(r Role) bool {
	return slices.ContainsFunc(s.tokens, func(t Token) bool { return t.May(r) == nil })
}

// call has data of a request that middleware adds, one after the other.
type call struct {
	id     string // of the request
	caller string // by which it is limited
	token  *Token // nil without a token
	denied error  // why the token was refused
	body   []byte
}

// callKey is the context key of a request's *call.
type callKey struct{}

// callOf returns the data of a request; never nil.
func callOf(ctx context.Context) *call {
	if c, ok := ctx.Value(callKey{}).(*call); ok {
		return c
	}
	return &call{denied: ErrUnauthorized}
}

// By returns the name of the request's token. ErrUnauthorized: it has none that is known.
func By(ctx context.Context) (string, error) {
	c := callOf(ctx)
	if c.token == nil {
		return "", c.denied
	}
	return c.token.Name, nil
}

// Allowed returns why the caller of a request may not do what needs the roles: ErrUnauthorized without a token that is
// known, ErrForbidden for a token that lacks a role.
func Allowed(ctx context.Context, needed ...Role) error {
	c := callOf(ctx)
	if c.token == nil {
		return c.denied
	}
	return c.token.May(needed...)
}

// RequestBody returns the body of a request, empty without one.
func RequestBody(ctx context.Context) []byte { return callOf(ctx).body }

// authenticate finds the caller's token. Routes that change something require a token.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		a := callOf(r.Context())
		scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if key := r.Header.Get("X-API-Key"); text == "" && key != "" { // as plugins of chats send it
			scheme, text = "bearer", key
		}
		if text == "" || !strings.EqualFold(scheme, "bearer") {
			return next(c)
		}
		if a.token = s.TokenOf(strings.TrimSpace(text)); a.token == nil {
			a.denied = &refusal{ErrUnauthorized, "the bearer token is not known", howToAuthorize}
		}
		return next(c)
	}
}

// permit checks the roles of the caller's token before parameters and body are read.
func (s *Server) permit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		needed := s.needs(c.Request(), c.Path())
		if len(needed) == 0 || c.Path() == "" || c.Request().Method == http.MethodOptions {
			return next(c)
		}
		a := callOf(c.Request().Context())
		if a.token == nil {
			return a.denied
		}
		if err := a.token.May(needed...); err != nil {
			return err
		}
		return next(c)
	}
}
