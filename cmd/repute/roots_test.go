package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"repute/internal/pgtest"
)

// TestRootsCommands adds, imports, lists and removes on an empty index.
func TestRootsCommands(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	const a, b = "0x1111111111111111111111111111111111111111", "0x2222222222222222222222222222222222222222"
	file := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("roots.yaml",
		"roots:\n- {chain: base, address: "+b+", reason: market, weight: 2}\n- {address: "+a+", reason: audits}\n")
	bad := file("bad.yaml", "roots:\n- {chain: base, address: "+b+", reason: market, expires: 2001-01-01}\n")
	none := file("none.yaml", "# cut short\n")
	links := file("links.jsonl", `{"a":"`+b+`","b":"`+a+`","reason":"one funder","source":"https://example.com"}`)
	for _, step := range []struct {
		args string
		code int
		want string // part of what is said
	}{
		{"roots list", 0, "no roots"},
		{"roots add " + a + " --chain base --reason audits --weight 3 --expires 2099-01-01", 0,
			"added " + a + " in set default of chain 8453, weight 3, counts from the next epoch"},
		{"roots add " + a + " --chain base --reason audits", 0, "chain 8453 is not indexed here yet"},
		{"roots add " + a + " --chain base --reason audits", 0,
			"changed " + a + " in set default of chain 8453, weight 3"},
		{"roots list", 0, "2099-01-01T00:00:00Z"},
		{"roots list --set nosuch", 1, "nosuch"},
		{"roots add " + a + " --chain mars --reason audits", 2, "mars"},
		{"roots add " + a + " --reason audits", 2, "chain"},
		{"roots add " + a + " --chain base", 2, "reason: is missing"},
		{"roots add " + a + " --chain base --reason r --weight 0", 2, "weight"},
		{"roots add " + a + " --chain base --reason r --expires 2001-01-01", 2, "is past"},
		{"roots add " + a + " --chain base --reason r --set No", 2, "set"},
		{"roots add 0x12 --chain base --reason r", 2, "address"},
		{"roots import " + bad, 2, "line 2, expires: 2001-01-01 is past"},
		{"roots import " + good, 2, "line 3, chain: is missing"},
		{"roots import " + good + " --chain ethereum --set mine", 2,
			"line 2, chain: is 8453, and the command is for chain 1 "},
		{"roots import " + good + " --chain base --set mine", 0, "2 roots of chain 8453"},
		{"roots list --set mine --chain ethereum", 1, "chain 1 has only: none"},
		{"roots list --set nope", 1, "there are: default, mine"},
		{"roots add " + b + " --chain base --reason audits --set mine", 0,
			"counts at once for requests that name the set"},
		{"roots list --set mine", 0, a},
		{"roots import " + none + " --chain base --replace", 2,
			"roots: the file lists none (give at least one entry; roots remove"},
		{"roots list --chain base", 0, "audits"},
		{"roots list --chain base", 0, "audits"},
		{"trust coverage", 0, "no chain is indexed yet"},
		{"trust coverage --chain base", 2, "8453 is not indexed"},
		{"trust coverage --chain 77", 2, "unknown chain 77"},
		{"trust coverage --json", 0, "[]"},
		{"roots remove " + a + " --chain base", 0, "removed " + a},
		{"roots remove " + a + " --chain base", 1, "not found"},
		{"evidence import " + links, 2, "line 1, chain: is missing"},
		{"evidence import " + links + " --chain base", 0, "1 links of chain 8453"},
		{"evidence import " + none + " --chain base --replace", 2, "links: the file lists none"},
		{"evidence remove " + a + " " + a + " --chain base", 1, "not found"},
		{"evidence list --chain base", 0, a + "  " + b + "  one funder"},
		{"evidence remove " + b + " " + a + " --chain base", 0, "removed the link"},
		{"evidence remove " + a + " " + b + " --chain base", 1, "not found"},
	} {
		var out, said bytes.Buffer
		code := run(t.Context(), append(strings.Fields(step.args), "--database-url", url), &out, &said)
		if code != step.code || !strings.Contains(out.String()+said.String(), step.want) {
			t.Errorf("%s: exit %d, %s%s", step.args, code, &out, &said)
		}
	}
	var out, said bytes.Buffer
	code := run(t.Context(), []string{"roots", "list", "--json", "--database-url", url}, &out, &said)
	var lists []struct{ Roots []struct{ Weight string } }
	if err := json.Unmarshal(out.Bytes(), &lists); code != 0 || err != nil || len(lists) != 1 ||
		lists[0].Roots[1].Weight != "2" {
		t.Errorf("exit %d, %v, %s%s", code, err, &out, &said)
	}
}
