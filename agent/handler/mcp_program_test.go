package handler_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"
	"time"

	"repute/agent/handler"
)

// TestMain lets the test's binary be an MCP server on standard input and output, or run a program as a
// handler does.
func TestMain(m *testing.M) {
	switch script := os.Getenv("RUN_EXEC"); {
	case script != "":
		e := &handler.Exec{Path: "/bin/sh", Args: []string{"-c", script}, Wall: time.Minute,
			Env: []string{"PATH=/usr/bin:/bin", os.Getenv("RUN_MARK")}}
		_, err := e.Run(context.Background(), request())
		fmt.Fprintln(os.Stderr, err)
	case os.Getenv("MCP_PROGRAM") != "":
		serveStdio()
	default:
		os.Exit(m.Run())
	}
}

// serveStdio speaks just enough of the protocol, in its oldest version, for one tool. The tool quit
// ends the program after its answer.
func serveStdio() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var q struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		if json.Unmarshal(in.Bytes(), &q) != nil || q.ID == nil {
			continue
		}
		answer := func(result string) { fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", q.ID, result) }
		switch q.Method {
		case "initialize":
			answer(`"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}`)
		case "tools/call":
			answer(fmt.Sprintf(`"result":{"content":[{"type":"text","text":"{\"pid\":%d}"}]}`, os.Getpid()))
			if q.Params.Name == "quit" {
				return
			}
		default:
			answer(`"error":{"code":-32601,"message":"no such method"}`)
		}
	}
}

// The program runs across calls and is started again when it ended.
func TestMCPProgramIsStartedAgain(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &handler.MCPProgram{Path: self, Env: []string{"MCP_PROGRAM=1"}}
	defer p.Close()
	run := func(tool string) string {
		out, err := (&handler.MCP{Server: p, Tool: tool}).Run(t.Context(), request())
		if err != nil {
			return err.Error()
		}
		return string(out)
	}
	first, second := run("pid"), run("quit")
	if first != second {
		t.Errorf("two programs answered: %s, %s", first, second)
	}
	for range 100 {
		if third := run("pid"); third != first && third[0] == '{' {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the program is not started again")
}
