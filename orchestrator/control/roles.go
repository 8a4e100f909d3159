package control

import (
	"net/http"
	"strings"

	"repute/internal/httpapi"
	"repute/orchestrator/control/rest"
)

// neededFor returns the roles that a request needs; none if it is open to everyone. path has the
// form of the router's patterns.
func (c *Control) neededFor(r *http.Request, path string) []httpapi.Role {
	below, v1 := strings.CutPrefix(path, rest.Prefix)
	if r.Method == http.MethodGet {
		if IsPrivate(path) && c.o.PrivateReads {
			return []httpapi.Role{httpapi.RoleRead}
		}
		return nil
	}
	switch {
	case !v1: // a question to the index or to the tools, which check roles themselves
		return nil
	case under(below, "/runs"): // an answer
		return []httpapi.Role{httpapi.RoleApprove}
	case under(below, "/tasks"), under(below, "/ingress"):
		return []httpapi.Role{httpapi.RoleAsk}
	case below == "/agents/:slug/trust":
		return []httpapi.Role{httpapi.RoleRead}
	}
	needed := []httpapi.Role{httpapi.RoleOperate}
	if under(below, "/treasury/policies") { // spenders must not set their own limits
		needed = []httpapi.Role{httpapi.RoleOwn}
	}
	if approve, err := httpapi.Flag(r.URL.Query().Get("approve")).Bool("approve"); approve || err != nil {
		needed = append(needed, httpapi.RoleApprove)
	}
	return needed
}

// under reports whether a path is head or below it.
func under(path, head string) bool { return path == head || strings.HasPrefix(path, head+"/") }

// IsPrivate reports whether a path shows tasks or operator actions. path is that of a request or a
// pattern of the router. Slashes at its end are ignored, as by the server.
func IsPrivate(path string) bool {
	path = strings.TrimRight(path, "/")
	below, v1 := strings.CutPrefix(path, rest.Prefix)
	return v1 && (under(below, "/tasks") || under(below, "/runs") || under(below, "/acts") ||
		under(below, "/treasury") || under(below, "/agents") && strings.HasSuffix(below, "/log")) ||
		strings.HasSuffix(path, "/"+logFile)
}
