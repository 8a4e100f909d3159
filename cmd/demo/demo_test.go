package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"repute/devnet"
	"repute/internal/pgtest"
	"strings"
	"testing"
)

// product builds the binary that the demo runs.
func product(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "repute")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", path,
		"repute/cmd/repute").CombinedOutput(); err != nil {
		t.Fatalf("build the product: %v\n%s", err, out)
	}
	return path
}

// mustRun runs the product and returns what it says.
func mustRun(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("repute %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestRefusals refuses wrong usage before anything starts, with the field and the fix.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--program", "/absent/repute"}, "program: there is no /absent/repute"},
		{[]string{"--listen", "nowhere", "--program", os.Args[0]}, "listen: "},
		{[]string{"now"}, "see --help"},
		{[]string{"--chain", "base"}, "unknown flag: --chain"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), c.args, &stdout, &stderr); code != 2 ||
			!strings.Contains(stderr.String(), c.want) ||
			stdout.Len() > 0 {
			t.Errorf("%v: exit code %d: %s", c.args, code, &stderr)
		}
	}
}

func TestDemoOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a whole chain")
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"--once", "--program", product(t)}, &stdout, &stderr); code != 0 {
		t.Fatalf("exit code %d:\n%s\n%s", code, &stderr, &stdout)
	}
	var summary struct {
		OK         bool
		Checked    map[string]int
		Documents  map[string]int
		Mismatches []string
	}
	if err := json.Unmarshal(stdout.Bytes(), &summary); err != nil {
		t.Fatal(err)
	}
	for kind, atLeast := range map[string]int{"owner": 40, "feedback": 350, "summary": 100, "validation": 10,
		"rated agents": wantRated, "score that a ring bought": 1,
		"task for an agent that is rated well": 1, "task for an agent that a ring praises": 1,
		"task that buys a forecast": 1, "units that the seller has": 1, "payment that proves the rating": 1,
		"decision of the tutorial":    len(tutorialSteps()),
		"posted ratings in the index": 1, "payment": 1, "roles that set caps": 4, "score that a report lifted": 1} {
		if summary.Checked[kind] < atLeast {
			t.Errorf("only %d comparisons of %s", summary.Checked[kind], kind)
		}
	}
	if !summary.OK || summary.Documents["ok"] < 30 || summary.Documents["failed"] == 0 ||
		summary.Documents["pending"] > 0 {
		t.Errorf("got %s", fmt.Sprint(summary))
	}
}

// The decisions that demo --once checks are those of the tutorial: no more and no less.
func TestTutorialSteps(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tutorials/gate-a-payment.md")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, m := range regexp.MustCompile(`/agents/\d+/decision\?minScore=\d+`).FindAllString(string(page), -1) {
		want[m] = true
	}
	// The second decision of the page is shown without its URL, which the sentence before it describes.
	want["/agents/5/decision?minScore=20"] = strings.Contains(string(page), "Ask the same about agent 5")
	for _, m := range regexp.MustCompile(`(?m)^pay_if_trusted (\d+) (\d+)$`).FindAllStringSubmatch(string(page), -1) {
		query := fmt.Sprintf("/agents/%s/decision?valueAtRisk=%s", m[1], m[2])
		want[query] = true
		denied := strings.Contains(string(page), "\nagent "+m[1]+" is not paid\n")
		for _, step := range tutorialSteps() {
			if step.query == query && (step.want == "deny") != denied {
				t.Errorf("%s: the page shows a denial: %v, the demo checks %s", query, denied, step.want)
			}
		}
	}
	for _, step := range tutorialSteps() {
		if !want[step.query] {
			t.Errorf("the page does not ask %s", step.query)
		}
		delete(want, step.query)
	}
	if len(want) > 0 {
		t.Errorf("not checked: %v", want)
	}
}

// The configuration that demo names follows its chain from another process, and a
// process that is to end says how far it came.
func TestDemoCanBeFollowed(t *testing.T) {
	dn, err := devnet.Start(t.Context(), devnet.Options{SafeDepth: 1, FinalizedDepth: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dn.Close() })
	docs, err := devnet.StartDocuments("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = docs.Close() })
	program := product(t)
	var out bytes.Buffer
	d := &demo{options: options{stdout: &out, program: program}, chain: dn, docs: docs, base: "http://demo"}
	file, remove, err := d.follower([]devnet.Account{dn.Faucet()})
	if err != nil {
		t.Fatal(err)
	}
	d.banner(file)
	for _, want := range []string{"http://demo/\n", "http://demo/status", "repute serve --config " + file,
		"export PATH='" + filepath.Dir(program) + "'"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in %s", want, &out)
		}
	}
	database := pgtest.New(t)
	mustRun(t, program, "roots", "import", filepath.Join(filepath.Dir(file), followerRoots), "--config", file,
		"--database-url", database)
	if says := mustRun(t, program, "roots", "list", "--database-url", database); !strings.Contains(says,
		dn.Faucet().Address.Hex()) {
		t.Errorf("the roots: %s", says)
	}
	if says := mustRun(t, program, "serve", "--once", "--roles", "indexer", "--config", file, "--database-url",
		database); !strings.Contains(says, "is indexed to block ") {
		t.Errorf("says %q", says)
	}
	remove()
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("%s stays: %v", file, err)
	}
	// What is stored goes by its id alone from then on.
	if says := mustRun(t, program, "serve", "--once", "--roles", "indexer", "--chain", "31337", "--rpc", dn.RPCURL(),
		"--database-url", database); !strings.Contains(says, "is indexed to block ") {
		t.Errorf("by its id: %q", says)
	}
	mustRun(t, program, "verify", "--chain", "31337", "--rpc", dn.RPCURL(), "--database-url", database)
}
