package policyfile

import (
	"os"
	"path/filepath"
	"testing"
)

// A file in the middle of being written compiles to a policy without its last rules: it
// counts only when two looks in a row found the same.
func TestPolicyFileCountsWhenItIsStable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.yaml")
	const whole = "version: \"1\"\ntrust: {unrated: deny, threshold: {minReputation: 10}}\n"
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(whole)
	f, err := OpenPolicy(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	first := f.Current().Hash()
	look := func(want bool) {
		t.Helper()
		if changed, err := f.read(); err != nil || changed != want {
			t.Errorf("read: %t, %v; want %t", changed, err, want)
		}
	}
	write("version: \"1\"\n") // an editor has written the first line
	look(false)
	write(whole + "# changed\n")
	look(false)
	if f.Current().Hash() != first {
		t.Error("half a file counts")
	}
	look(true)
	look(false)
	second := f.Current().Hash()
	write("version: \"1\"\ntrust: {")
	look(false)
	if _, err := f.read(); err == nil || f.Current().Hash() != second {
		t.Errorf("a file that is wrong counts, or is not told: %v", err)
	}
	look(false) // it is told once
}
