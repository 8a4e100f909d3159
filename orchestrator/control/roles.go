package control

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"repute"
	"repute/internal/httpapi"
)

// role is what a token is for.
type role string

// Roles of tokens. Whoever has any may read.
const (
	roleAsk     role = "ask"     // for tasks: submit, cancel, try again
	roleApprove role = "approve" // what the policy leaves to a person
	roleOperate role = "operate" // agents, identities, feedback, calls and transfers by the treasury
	roleOwn     role = "own"     // what the treasury allows: operators, caps, allow-lists, relayers
	roleRead    role = "read"    // and nothing else
)

// roleNames lists the roles that a configuration may name.
func roleNames() []string {
	return []string{string(roleAsk), string(roleApprove), string(roleOperate), string(roleOwn), string(roleRead)}
}

// readRoles gives tokens their roles; one that none are named for has all.
func readRoles(tokens []token, roles map[string][]string) error {
	for name, list := range roles {
		at := slices.IndexFunc(tokens, func(t token) bool { return t.name == name })
		if at < 0 {
			return repute.Invalid("orchestrator.roles."+name, "is of no token", "a name of orchestrator.tokens")
		}
		tokens[at].roles = []role{}
		for _, r := range list {
			if !slices.Contains(roleNames(), r) {
				return repute.Invalid("orchestrator.roles."+name, fmt.Sprintf("%.40q is no role", r),
					"a list of "+strings.Join(roleNames(), ", "))
			}
			tokens[at].roles = append(tokens[at].roles, role(r))
		}
		if len(list) == 0 {
			return repute.Invalid("orchestrator.roles."+name, "is empty",
				"a list of "+strings.Join(roleNames(), ", ")+", or no entry: the token has all")
		}
	}
	return nil
}

// may is httpapi.ErrForbidden where the token has not all of the roles.
func (t *token) may(needed ...role) error {
	for _, r := range needed {
		if t.roles != nil && r != roleRead && !slices.Contains(t.roles, r) {
			return fmt.Errorf("the token of %s has not the role %q, which orchestrator.roles gives: %w", t.name, r,
				httpapi.ErrForbidden)
		}
	}
	return nil
}

// neededFor says which roles a request takes; none: it is open to all. path is as the
// router writes it.
func (c *Control) neededFor(r *http.Request, path string) []role {
	below, _ := strings.CutPrefix(path, prefix)
	if r.Method == http.MethodGet {
		if IsPrivate(path) && c.o.PrivateReads {
			return []role{roleRead}
		}
		return nil
	}
	switch {
	case under(below, "/runs"): // an answer
		return []role{roleApprove}
	case under(below, "/tasks"), under(below, "/ingress"):
		return []role{roleAsk}
	case below == "/agents/:slug/trust":
		return []role{roleRead}
	}
	needed := []role{roleOperate}
	if under(below, "/treasury/policies") { // whoever spends sets no caps
		needed = []role{roleOwn}
	}
	if asked := r.URL.Query().Get("approve"); asked != "" && asked != "false" {
		needed = append(needed, roleApprove)
	}
	return needed
}

// under reports whether a path is head or below it.
func under(path, head string) bool { return path == head || strings.HasPrefix(path, head+"/") }

// IsPrivate reports whether a path, of a request or as the router writes it, shows what
// tasks and the operator did.
func IsPrivate(path string) bool {
	below, v1 := strings.CutPrefix(path, prefix)
	return v1 && (under(below, "/tasks") || under(below, "/runs") || under(below, "/acts") ||
		under(below, "/treasury") || under(below, "/agents") && strings.HasSuffix(below, "/log")) ||
		strings.HasSuffix(path, "/"+logFile)
}

// permit lets through what the caller's token is for, before parameters and body are read.
func (c *Control) permit(next echo.HandlerFunc) echo.HandlerFunc {
	return func(e echo.Context) error {
		a := aboutOf(e.Request().Context())
		needed := c.neededFor(e.Request(), e.Path())
		if len(needed) == 0 || e.Path() == "" || e.Request().Method == http.MethodOptions {
			return next(e)
		}
		if a.token == nil {
			return a.denied
		}
		if err := a.token.may(needed...); err != nil {
			return err
		}
		return next(e)
	}
}
