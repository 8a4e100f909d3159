package oafagent_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"repute/agent/llm"
	"repute/agent/llm/oafagent"
	"repute/internal/modeltest"
	"repute/manifest/oaf"
)

// kept is a Ledger that answers lists of tools again, by the input of the call, as a journal does after a restart.
type kept struct {
	llm.Meter
	lists map[string]string
}

func (k *kept) Tool(ctx context.Context, use llm.ToolUse, do func(context.Context) (string, error)) (string, error) {
	if use.Name != "mcp_tools" {
		return do(ctx)
	}
	if text, ok := k.lists[string(use.Input)]; ok {
		return text, nil
	}
	text, err := do(ctx)
	k.lists[string(use.Input)] = text
	return text, err
}

// A conversation that is resumed after its agent's file changed reaches the servers that its lists are of, and only
// tools that are still allowed.
func TestResumedServers(t *testing.T) {
	first, second := servedAs(t, "first", "one"), served(t, oaf.TransportHTTP, "")
	ledger := &kept{lists: map[string]string{}}
	talk := func(servers []oaf.Server, denied ...string) (tools []string, told string) {
		t.Helper()
		s := modeltest.New(call("files__read_file", `{"path":"/a"}`), modeltest.Turn{Text: "end"})
		a, err := prepare(t, s, &oaf.Agent{Slug: "acme/a", Body: "x", Servers: servers,
			Config: oaf.Config{Denied: denied}}, nil)
		ok(t, err)
		_, err = a.Run(t.Context(), oafagent.Session{ID: "s", Ledger: ledger}, "go")
		ok(t, err)
		return s.Seen()[0].Tools, last(s.Seen()[1])
	}
	all := []string{"files__delete_file", "files__read_file", "files__write_file"}
	if got, told := talk([]oaf.Server{first, second}); !slices.Equal(got, append([]string{"first__one"}, all...)) ||
		told != "read_file of /a" {
		t.Fatalf("tools %v, told %q", got, told)
	}
	program := oaf.Server{Name: "first", Connection: oaf.Connection{Type: oaf.TransportStdio, Command: "sh"}}
	for name, servers := range map[string][]oaf.Server{"left out": {program, second}, "removed": {second},
		"moved": {second, first}} {
		got, told := talk(servers)
		if got = slices.DeleteFunc(got, func(n string) bool { return n == "first__one" }); !slices.Equal(got, all) ||
			told != "read_file of /a" {
			t.Errorf("%s: tools %v, told %q", name, got, told)
		}
	}
	if got, told := talk([]oaf.Server{second}, "read_file"); !slices.Equal(got, []string{all[0], all[2]}) ||
		!strings.Contains(told, "there is no tool") {
		t.Errorf("denied since: tools %v, told %q", got, told)
	}
	second.Selection = oaf.Selection{Present: true, Strategy: oaf.StrategySubset,
		Tools: []oaf.SelectedTool{{Name: "read_file", Enabled: true}}}
	if got, _ := talk([]oaf.Server{second}); !slices.Equal(got, all[1:2]) {
		t.Errorf("no longer selected: tools %v", got)
	}
	second.Selection, second.Permissions.ReadOnly = oaf.Selection{}, true
	if got, _ := talk([]oaf.Server{second}); !slices.Equal(got, all[1:2]) {
		t.Errorf("read alone since: tools %v", got)
	}
}
