package oaf

import (
	"context"
	"errors"
	"slices"
	"testing"

	"repute"
	"repute/manifest/oaf/problem"
)

// lister answers for servers by their names; others do not answer.
type lister map[string][]string

func (l lister) ListTools(_ context.Context, s Server) ([]string, error) {
	if tools, ok := l[s.Name]; ok {
		return tools, nil
	}
	return nil, errors.New("does not answer")
}

// refusing is a lister that may not ask.
type refusing struct{}

func (refusing) ListTools(context.Context, Server) ([]string, error) {
	return nil, repute.Invalid("connection.url", "is private", "allow it")
}

// The hint for a server that could not be asked is that of the error: what the caller can do differs.
func TestNotAskedHint(t *testing.T) {
	a := &Agent{Servers: []Server{{Dir: "mcp-configs/s", Name: "s",
		Selection: Selection{Present: true, Tools: []SelectedTool{{Name: "a", Enabled: true}}}}}}
	for _, tc := range []struct {
		from          ToolLister
		message, hint string
	}{{refusing{}, "connection.url: is private", "allow it"},
		{lister{}, "does not answer", problem.Hint(problem.CodeNotAsked)}} {
		got := CheckTools(t.Context(), a, tc.from, problem.Lenient)
		if len(got) != 1 || got[0].Message != tc.message || got[0].Hint != tc.hint {
			t.Errorf("%+v, want %s (%s)", got, tc.message, tc.hint)
		}
	}
}

func TestCheckTools(t *testing.T) {
	selection := func(tools ...SelectedTool) Selection {
		return Selection{Present: true, Strategy: StrategySubset, Tools: tools}
	}
	for _, tc := range []struct {
		name   string
		s      Selection
		tools  lister
		strict []string
	}{
		{"known", selection(SelectedTool{Name: "a", Enabled: true, Required: true}), lister{"s": {"a", "b"}}, nil},
		{"pattern", selection(SelectedTool{Name: "a.*", Enabled: true}), lister{"s": {"a.x"}}, nil},
		{"required", selection(SelectedTool{Name: "c", Enabled: true, Required: true}), lister{"s": {"a"}},
			[]string{"EO771"}},
		{"optional", selection(SelectedTool{Name: "c", Enabled: true}), lister{"s": {"a"}}, []string{"EO772"}},
		{"disabled", selection(SelectedTool{Name: "c"}), lister{"s": {"a"}}, nil},
		{"silent", selection(SelectedTool{Name: "a", Enabled: true}), lister{}, []string{"IO773"}},
		{"nothing selected", Selection{}, lister{}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := &Agent{Servers: []Server{{Dir: "mcp-configs/s", Name: "s", Selection: tc.s}}}
			if got := codes(CheckTools(t.Context(), a, tc.tools, problem.Strict)); !slices.Equal(got, tc.strict) {
				t.Errorf("codes %v, want %v", got, tc.strict)
			}
		})
	}
}
