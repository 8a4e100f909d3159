package oaf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute/manifest/oaf/problem"
)

// The two example agents of the format's text break the text's own rules: readers take them, publishers must not write
// them.
func TestExamplesOfTheText(t *testing.T) {
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	dir = filepath.Join(dir, "oaf/seed-examples")
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("test data absent: %v", err)
	}
	for name, want := range map[string]struct{ lenient, strict string }{
		"minimal-agent": {"IO778 WO746", "EO746 IO778"},
		"code-reviewer": {"WO746 WO750", "EO746 EO750"},
	} {
		for profile, codesWanted := range map[problem.Profile]string{problem.Lenient: want.lenient,
			problem.Strict: want.strict} {
			a, problems := Load(os.DirFS(dir), name, profile)
			if got := strings.Join(codes(problems), " "); got != codesWanted || a == nil {
				t.Errorf("%s, profile %d: codes %q, want %q", name, profile, got, codesWanted)
			}
		}
	}
}
