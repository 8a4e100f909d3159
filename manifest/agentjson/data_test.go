package agentjson

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"repute"
)

// testData reads a file of upstream's repository or of the vectors, which are not part of this repository.
func testData(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dataDir(), name))
	if err != nil {
		t.Skipf("test data absent: %v", err)
	}
	return b
}

func dataDir() string {
	dir := os.Getenv("REPUTE_TEST_DATA")
	if dir == "" {
		dir = "../../../shared/data"
	}
	return filepath.Join(dir, "agentjson")
}

// codes lists the codes of problems.
func codes(problems []repute.Problem) []string {
	out := make([]string, 0, len(problems))
	for _, p := range problems {
		out = append(out, p.Code)
	}
	return out
}

// errorsOf lists the errors among problems.
func errorsOf(problems []repute.Problem) (out []repute.Problem) {
	for _, p := range problems {
		if p.Severity == repute.SeverityError {
			out = append(out, p)
		}
	}
	return out
}

// Upstream's examples are manifests without errors, for readers and for publishers.
func TestUpstreamExamples(t *testing.T) {
	t.Parallel()
	testData(t, "agent-json/schema.json")
	names, err := filepath.Glob(filepath.Join(dataDir(), "agent-json/examples/*.json"))
	if err != nil || len(names) != 13 {
		t.Fatalf("%d examples, %v", len(names), err)
	}
	tiers := map[string]Tier{"tier1-minimal.json": TierMinimal, "tier3-authenticated.json": TierIdentified,
		"v14-consolidated-trust.json": TierIdentified}
	for _, path := range names {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(path)
		for _, profile := range []Profile{Lenient, Strict} {
			m, problems := Parse(b, Options{Profile: profile})
			if wrong := errorsOf(problems); len(wrong) > 0 {
				t.Errorf("%s, profile %d: %+v", name, profile, wrong)
			}
			want, named := tiers[name]
			if !named {
				want = TierStructured
			}
			if got := Declared(m); got != want {
				t.Errorf("%s: tier %s, want %s", name, got, want)
			}
			var origin struct{ Origin string }
			if json.Unmarshal(b, &origin) != nil || m.Origin != origin.Origin {
				t.Errorf("%s: origin %q", name, m.Origin)
			}
		}
	}
}
