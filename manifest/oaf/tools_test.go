package oaf

import (
	"context"
	"errors"
	"slices"
	"testing"

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
