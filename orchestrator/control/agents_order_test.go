package control

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAgentsAfter: pages of agents have each agent once, in whatever order the database sorts them: in most collations
// hyphens do not count. The agent of a cursor may have been removed since.
func TestAgentsAfter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		slugs := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab-]{1,3}`), 1, 12, rapid.ID).Draw(t, "slugs")
		removed, seen, cursor := rapid.SampledFrom(slugs).Draw(t, "removed"), []string{}, ""
		for range slugs {
			var list []TaskAgent
			for _, slug := range slugs {
				if slug != removed || cursor == "" {
					list = append(list, TaskAgent{Slug: slug})
				}
			}
			page := agentsAfter(list, cursor)
			if len(page) == 0 {
				break
			}
			cursor = page[0].Slug
			seen = append(seen, cursor)
		}
		want := slices.Clone(slugs)
		if slices.Sort(want); want[0] != removed { // the first page had it
			want = slices.DeleteFunc(want, func(s string) bool { return s == removed })
		}
		if !slices.Equal(seen, want) {
			t.Fatalf("%q, want %q", seen, want)
		}
	})
}
