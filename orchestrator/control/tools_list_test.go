package control_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"repute/api"
	"repute/internal/httpapi"
)

// maxToolList is how much of a model's attention the list of tools may take, in bytes.
const maxToolList = 40_000

// TestToolListIsSmall measures tools/list of a whole server, which has the tools of the index
// and those of the orchestrator, as it is served.
func TestToolListIsSmall(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	index, err := httpapi.NewServer(h.o.on)
	ok(t, err)
	_, err = api.New(api.Options{Server: index, DB: h.db, Tools: h.o.Tools})
	ok(t, err)
	handler, err := index.Handler()
	ok(t, err)
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp",
		bytes.NewBufferString(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`))
	ok(t, err)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	resp, err := http.DefaultClient.Do(req)
	ok(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	ok(t, err)
	var list struct {
		Result struct {
			Tools []struct {
				Name                      string
				InputSchema, OutputSchema json.RawMessage
			}
		}
	}
	ok(t, json.Unmarshal(body, &list))
	t.Logf("%d bytes", len(body))
	if n := len(list.Result.Tools); n != 30 || len(body) >= maxToolList {
		t.Errorf("%d tools in %d bytes", n, len(body))
		for _, tool := range list.Result.Tools {
			t.Logf("%s: input %d, output %d bytes", tool.Name, len(tool.InputSchema), len(tool.OutputSchema))
		}
	}
}
