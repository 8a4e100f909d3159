package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"repute/cmd/repute/internal/files"
	"repute/internal/pgtest"
)

// TestDocumentsCommands denies, lists, allows and retries on an empty index.
func TestDocumentsCommands(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	for _, step := range []struct {
		args string
		code int
		want string // part of what is said
	}{
		{"status", 0, "URIs  0  due 0  planned 0"},
		{"retry", 2, "selects nothing"},
		{"retry 22", 1, "a chain is not indexed yet"},
		{"retry x", 2, `agent: "x": not a decimal token id`},
		{"retry --all", 0, "nothing to fetch again: none of 0 documents failed; 0 documents are due anyway"},
		{"retry --all 8453:22", 2, "give --all alone"},
		{"retry --reason timeout 8453:22", 1, "chain 8453 is not indexed"},
		{"retry --reason timeout", 0, "none of 0 documents failed with timeout"},
		{"retry --reason nonsense", 2, "too_slow"},
		{"retry --host nosuch.example", 1, "host nosuch.example has no document"},
		{"deny host bad.example --reason phishing", 0, "denied host bad.example: 0 documents of 0 agents"},
		{"deny agent 8453:9 --reason x", 0, "the denial waits for it"},
		{"deny host https://bad.example --reason x", 2, "is no host"},
		{"deny host bad.example", 2, "reason"},
		{"denied", 0, "host   bad.example"},
		{"allow host bad.example", 0, "allowed host bad.example again: 0 documents of 0 agents"},
		{"allow host bad.example", 1, "host bad.example is not denied"},
	} {
		var out, said bytes.Buffer
		code := run(t.Context(), append([]string{"documents"},
			append(strings.Fields(step.args), "--database-url", url)...),
			&out, &said)
		if code != step.code || !strings.Contains(out.String()+said.String(), step.want) {
			t.Errorf("documents %s: exit %d, %s%s", step.args, code, &out, &said)
		}
	}
	var out, said bytes.Buffer
	code := run(t.Context(), []string{"documents", "status", "--json", "--database-url", url}, &out, &said)
	var s files.DocumentsStatus
	if err := json.Unmarshal(out.Bytes(), &s); code != 0 || err != nil || len(s.Queue) != 4 ||
		s.Queue[0].Rank != "new" {
		t.Errorf("exit %d, %v, %s%s", code, err, &out, &said)
	}
}
