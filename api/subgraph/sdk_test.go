package subgraph_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"testing"
	"time"
)

// sdkVariable names the directory into which scripts/sdk.sh installs the SDK.
const sdkVariable = "REPUTE_AGENT0_SDK"

// TestSDKOfAgent0: the unmodified SDK finds agents and feedback in our subgraph.
func TestSDKOfAgent0(t *testing.T) {
	dir := os.Getenv(sdkVariable)
	if dir == "" {
		t.Skipf("%s is not set: make test-sdk installs the SDK", sdkVariable)
	}
	s := serve(t, story(t).db)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "node", filepath.Join(dir, "ask.mjs"), fmt.Sprintf("%s/subgraphs/%d", s.URL, chainID))
	c.Dir, c.Stderr = dir, os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	first, both := []any{"8453:1"}, []any{"8453:1", "8453:2"}
	for name, want := range map[string]any{"all": both, "named": first, "wildcard": []any{}, "active": first,
		"tools":  first,
		"skills": first, "trust": first, "endpoints": first, "without": []any{"8453:10"}, "metadata": first,
		"rated":   first,
		"summary": map[string]any{"count": 1.0, "averageValue": 99.5}} {
		if !reflect.DeepEqual(got[name], want) {
			t.Errorf("%s: %v, not %v", name, got[name], want)
		}
	}
	agent, _ := got["agent"].(map[string]any)
	if agent["name"] != "Alpha 100%_" || !reflect.DeepEqual(agent["mcpTools"], []any{"add"}) {
		t.Errorf("agent: %v", agent)
	}
	if list, _ := got["feedback"].([]any); len(list) != 1 {
		t.Errorf("feedback: %v", got["feedback"])
	}
}
