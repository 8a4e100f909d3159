package control

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
	"repute/orchestrator/control/rest"
)

// roleOf returns the role that a route below /v1 needs, RoleRead for reads of tasks, runs and money, which are open too
// unless reads are private, and "" for reads that are open to everyone. path is without the prefix /v1, and in the form
// of the router's patterns. known is false for a route that is not in this table: such a route MUST stay closed,
// because nobody decided who may use it.
func roleOf(method, path string) (role httpapi.Role, known bool) {
	switch method + " " + path {
	case "GET /agents", "GET /agents/:slug", "GET /agents/:slug/trust", "GET /agents/:slug/agent-registration.json",
		"GET /agents/:slug/agent.json", "GET /agents/:slug/manifest", "GET /agents/openapi.json",
		"GET /attestation": // of the index, which is public
		return "", true
	case "GET /agents/:slug/agent_log.json", "GET /agents/:slug/log", "GET /tasks", "GET /tasks/:id", "GET /runs",
		"GET /runs/:id",
		"GET /runs/:id/receipts", "GET /runs/:id/receipts/:receipt", "GET /runs/:id/decisions",
		"GET /runs/:id/gate:verify", "GET /runs/:id/events", "GET /acts", "GET /acts/:id", "GET /treasury/status",
		"GET /treasury/policies/:slug", "GET /treasury/events":
		return httpapi.RoleRead, true
	case "POST /agents/:slug/trust": // a question, which changes nothing that others see
		return httpapi.RoleRead, true
	case "POST /tasks", "POST /tasks/:id/cancel", "POST /tasks/:id/retry", "POST /ingress/openclaw/task":
		return httpapi.RoleAsk, true
	case "POST /runs/:id/approval":
		return httpapi.RoleApprove, true
	case "GET /webhooks", "GET /webhooks/:id", "POST /webhooks", "DELETE /webhooks/:id", "POST /webhooks/:id/test",
		"POST /webhooks/:id/replay", "POST /webhooks/:id/rotate", // an address may be a secret of its receiver
		"GET /keys", "POST /keys", "DELETE /keys/:name": // of the operator alone, also where reads are open
		return httpapi.RoleOperate, true
	case "POST /agents", "DELETE /agents/:slug", "POST /agents/:slug/wallet", "POST /identities", "POST /feedback",
		"POST /treasury/calls", "POST /treasury/transfers":
		return httpapi.RoleOperate, true
	case "PUT /treasury/policies/:slug": // spenders must not set their own limits
		return httpapi.RoleOwn, true
	}
	return "", false
}

// neededFor returns the roles that a request needs; none if it is open to everyone. path has the
// form of the router's patterns. A route below /v1 that roleOf does not know needs all roles.
func (c *Control) neededFor(r *http.Request, path string) []httpapi.Role {
	below, v1 := belowPrefix(path)
	switch {
	case r.Method == http.MethodGet && !v1:
		if IsPrivate(path) && c.o.PrivateReads {
			return []httpapi.Role{httpapi.RoleRead}
		}
		return nil
	case !v1: // a question to the index or to the tools, which check roles themselves
		return nil
	}
	role, known := roleOf(r.Method, below)
	if !known {
		return []httpapi.Role{httpapi.RoleAsk, httpapi.RoleApprove, httpapi.RoleOperate, httpapi.RoleOwn}
	}
	if r.Method == http.MethodGet && (role == "" || role == httpapi.RoleRead && !c.o.PrivateReads) {
		return nil
	}
	needed := []httpapi.Role{role}
	if role == httpapi.RoleOperate || role == httpapi.RoleOwn {
		if approve, err := httpapi.Flag(r.URL.Query().Get("approve")).Bool("approve"); approve || err != nil {
			needed = append(needed, httpapi.RoleApprove)
		}
	}
	return needed
}

// belowPrefix returns the part of a path after /v1, and whether the path is below it. Colons that the
// router's patterns escape are plain in it.
func belowPrefix(path string) (below string, ok bool) {
	below, ok = strings.CutPrefix(path, rest.Prefix)
	return strings.ReplaceAll(below, `\:`, ":"), ok && (below == "" || below[0] == '/')
}

// IsPrivate reports whether a path is not open to everyone: below /v1 all that do not show agents, and
// the log of the coordinator. path is that of a request or a pattern of the router. Slashes at its end
// are ignored, as by the server.
func IsPrivate(path string) bool {
	path = strings.TrimRight(path, "/")
	below, v1 := belowPrefix(path)
	if !v1 {
		return strings.HasSuffix(path, "/"+logFile)
	}
	parts := strings.Split(below, "/") // the first is empty
	if len(parts) > 2 {
		parts[2] = ":slug" // the open routes have no other parameter
	}
	role, known := roleOf(http.MethodGet, strings.Join(parts, "/"))
	return !known || role != ""
}

// checkRoles returns an error that names the routes below /v1 that are missing in roleOf. A program that would
// serve one does not start.
func checkRoles(routes []*echo.Route) error {
	var missing []error
	for _, r := range routes {
		below, v1 := belowPrefix(r.Path)
		if _, known := roleOf(r.Method, below); v1 && !known {
			missing = append(missing, fmt.Errorf("%s %s: roleOf does not say who may use the route", r.Method, r.Path))
		}
	}
	return errors.Join(missing...)
}
