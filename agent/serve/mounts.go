package serve

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
)

// mountOthers adds the other surfaces. Behind a loopback address they answer to the agent's own names
// alone, so that a page cannot reach them under a name of its own.
func (s *surface) mountOthers() error {
	o := httpapi.GuardOptions{Public: func(*http.Request) bool { return true },
		Hint: "set profile.url of the agent to the address that clients use"}
	if u, err := url.Parse(s.o.Profile.URL); err == nil && u.Hostname() != "" {
		o.Hosts = []string{u.Hostname()}
	}
	guard, err := httpapi.NewGuard(o)
	if err != nil {
		return err
	}
	for _, m := range s.o.Mounts {
		path := m.Path
		if m.Below {
			path += "/*"
		}
		s.server.Raw(path)
		if m.Stream {
			s.server.Streams(path)
		}
		for _, method := range m.Methods {
			s.server.Echo.Add(method, path, echo.WrapHandler(guard.Over(m.Handler)))
		}
	}
	return nil
}

// mounted reports whether a path is of another surface.
func (s *surface) mounted(path string) bool {
	path = strings.TrimRight(path, "/")
	for _, m := range s.o.Mounts {
		if path == m.Path || m.Below && strings.HasPrefix(path, m.Path+"/") {
			return true
		}
	}
	return false
}
