package oafagent_test

import (
	"errors"
	"net/http"
	"os"
	"slices"
	"testing"

	"repute"
	"repute/agent/llm/oafagent"
	"repute/manifest/oaf"
	"repute/manifest/oaf/problem"
)

// Servers are asked for their tools with the rights of an agent that runs: no program without permission, and no
// variable that is not allowed.
func TestLister(t *testing.T) {
	secret := map[string]string{"TOKEN": "abc"}
	o := oafagent.Options{Getenv: func(name string) string { return secret[name] }, Env: []string{"TOKEN"},
		Client: http.DefaultClient}
	for _, kind := range []string{oaf.TransportHTTP, oaf.TransportSSE} {
		srv := served(t, kind, "Bearer abc")
		srv.Auth = oaf.Auth{Type: "bearer", Token: "${TOKEN}"}
		names, err := oafagent.Lister{Options: o}.ListTools(t.Context(), srv)
		slices.Sort(names)
		if err != nil || !slices.Equal(names, []string{"delete_file", "read_file", "write_file"}) {
			t.Errorf("%s: %v, %v", kind, names, err)
		}
		srv.Selection = oaf.Selection{Present: true, Tools: []oaf.SelectedTool{{Name: "read_*", Enabled: true},
			{Name: "move_file", Enabled: true, Required: true}}}
		found := oaf.CheckTools(t.Context(), &oaf.Agent{Servers: []oaf.Server{srv}}, oafagent.Lister{Options: o},
			problem.Lenient)
		if len(found) != 1 || found[0].Code != problem.CodeToolRequired {
			t.Errorf("%s: %+v", kind, found)
		}
		srv.Auth.Token = "${HOME}"
		if _, err := (oafagent.Lister{Options: o}).ListTools(t.Context(), srv); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: a variable that is not allowed: %v", kind, err)
		}
	}
	program := oaf.Server{Name: "p", Connection: oaf.Connection{Type: oaf.TransportStdio, Command: "true"}}
	if _, err := (oafagent.Lister{Options: o}).ListTools(t.Context(), program); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a program without permission: %v", err)
	}
	gone := oaf.Server{Name: "g", Connection: oaf.Connection{Type: oaf.TransportHTTP, URL: "http://127.0.0.1:1"}}
	if _, err := (oafagent.Lister{Options: o}).ListTools(t.Context(), gone); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("a server that is away: %v", err)
	}
}

// Programs that are bad servers end with a reason in bounded time, and one that lists tools without end is read as far
// as the bound.
func TestListerOfBadPrograms(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	ok(t, err)
	o := oafagent.Options{Getenv: os.Getenv, Programs: true}
	program := func(kind string) oaf.Server {
		return oaf.Server{Name: kind, Dir: "mcp-configs/" + kind,
			Connection: oaf.Connection{Type: oaf.TransportStdio, Command: self,
				Env: map[string]string{"BAD_SERVER": kind}}}
	}
	for _, kind := range []string{"silent", "noisy"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			names, err := oafagent.Lister{Options: o}.ListTools(t.Context(), program(kind))
			if !errors.Is(err, repute.ErrUnavailable) || len(names) > 0 {
				t.Errorf("%d tools, %v", len(names), err)
			}
		})
	}
	t.Run("many", func(t *testing.T) {
		t.Parallel()
		names, err := oafagent.Lister{Options: o}.ListTools(t.Context(), program("many"))
		if err != nil || len(names) < 1000 || len(names) > 1500 {
			t.Errorf("%d tools, %v", len(names), err)
		}
	})
}
