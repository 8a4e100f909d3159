package oafagent_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"repute/agent/llm"
	"repute/agent/llm/oafagent"
	"repute/internal/modeltest"
	"repute/manifest/oaf"
)

// listOnce is an MCP server until it has listed its tools. It writes its process id to PID_FILE.
func listOnce() {
	_ = os.WriteFile(os.Getenv("PID_FILE"), []byte(strconv.Itoa(os.Getpid())), 0o600) // the test fails without it
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var r struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(in.Bytes(), &r) // the client's messages are JSON
		switch r.Method {
		case "initialize":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},`+
				`"serverInfo":{"name":"deaf","version":"1"}}}`+"\n", r.ID)
		case "tools/list":
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"put","inputSchema":{"type":"object"}}]}}`+
				"\n", r.ID)
			return
		default:
			if len(r.ID) > 0 {
				fmt.Printf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`+"\n", r.ID)
			}
		}
	}
}

// A server over standard input and output that stops reading fails the call in time, and its program is ended.
func TestDeafServer(t *testing.T) {
	self, err := os.Executable()
	ok(t, err)
	file := t.TempDir() + "/pid"
	def := &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{{Name: "bad", Connection: oaf.Connection{
		Type: oaf.TransportStdio, Command: self, Env: map[string]string{"BAD_SERVER": "deaf", "PID_FILE": file},
		Timeout: 1}}}}
	large := fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", 250_000)) // far more than a pipe holds
	s := modeltest.New(call("bad__put", large), modeltest.Turn{Text: "end"})
	a, err := prepare(t, s, def, func(o *oafagent.Options) { o.Programs = true })
	ok(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := a.Run(t.Context(), oafagent.Session{ID: "s", Ledger: &llm.Meter{}}, "go")
		ended <- err
	}()
	select {
	case err := <-ended:
		ok(t, err)
	case <-time.After(time.Minute):
		t.Fatal("the conversation hangs")
	}
	if told := last(s.Seen()[1]); !strings.Contains(told, "does not read its input") {
		t.Errorf("told %.200q", told)
	}
	text, err := os.ReadFile(file)
	ok(t, err)
	pid, err := strconv.Atoi(string(text))
	ok(t, err)
	for until := time.Now().Add(time.Minute); syscall.Kill(pid, 0) == nil; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the program still runs")
		}
	}
}
