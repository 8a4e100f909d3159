package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"repute/internal/pgtest"
	"repute/internal/rpctest"
)

// peakMost is how much memory a process may take whatever its node answers, without the pages of its own program.
const peakMost = 190 << 20

// A node that answers 200 MB, as many logs or as one text, is refused before that is in
// memory.
func TestHugeAnswers(t *testing.T) {
	const size = 200 << 20
	chain := rpctest.New(t, rpctest.Options{})
	chain.Mine(chain.Register(0, rpctest.Account(1), "data:,{}"))
	chain.MineEmpty(200)
	chain.Finalize(150, 150)
	log, err := json.Marshal(chain.Blocks()[1].Receipts[0].Logs[0])
	if err != nil {
		t.Fatal(err)
	}
	many := []byte(`[{"jsonrpc":"2.0","id":2,"result":[` + strings.Repeat(string(log)+",",
		size/len(log)) + string(log) + `]}]`)
	long := []byte(`[{"jsonrpc":"2.0","id":2,"result":[{"data":"0x` + strings.Repeat("00", size/2) + `"}]}]`)
	early := []byte(`[{"jsonrpc":"2.0","result":[` + strings.Repeat(string(log)+",",
		size/len(log)) + string(log) + `],"id":2}]`)
	logs := func(size int) any {
		return json.RawMessage("[" + strings.Repeat(string(log)+",", size/len(log)) + string(log) + "]")
	}
	text := func(size int) any { return json.RawMessage(`[{"data":"0x` + strings.Repeat("00", size/2) + `"}]`) }
	const allowed = 5 << 20 // two results of this size fit into one message of a WebSocket
	for name, c := range map[string]struct {
		answer rpctest.Answer
		socket bool
		asks   int
	}{
		"many logs": {rpctest.Answer{Raw: many}, false, 15}, "one text": {rpctest.Answer{Raw: long}, false, 15},
		"result before id":         {rpctest.Answer{Raw: early}, false, 15},
		"many logs by socket":      {rpctest.Answer{Result: logs(size)}, true, 30},
		"one text by socket":       {rpctest.Answer{Result: text(size)}, true, 30},
		"logs that fit a message":  {rpctest.Answer{Result: logs(allowed)}, true, 30},
		"text that fits a message": {rpctest.Answer{Result: text(allowed)}, true, 30},
	} {
		t.Run(name, func(t *testing.T) {
			asked := chain.Calls("eth_getLogs")
			undo := chain.Inject(rpctest.On("eth_getLogs", rpctest.Always(c.answer)))
			database := pgtest.New(t)
			path := configure(t, chain, database)
			if c.socket {
				useSocket(t, path, chain)
			}
			cmd, out := child(t, "serve", "--config", path)
			for end := time.Now().Add(2 * time.Minute); chain.Calls("eth_getLogs") < asked+
				c.asks; time.Sleep(20 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("%d answers were asked for, the program says:\n%.3000s",
						chain.Calls("eth_getLogs")-asked, out)
				}
			}
			peak := peakOf(t, cmd.Process.Pid)
			t.Logf("peak %d MB", peak>>20)
			if peak > peakMost {
				t.Errorf("%d MB were taken, want at most %d", peak>>20, peakMost>>20)
			}
			undo()
			waitCursor(t, openTest(t, database), 200, out)
		})
	}
}

// useSocket has a configuration read the chain by WebSocket.
func useSocket(t *testing.T, path string, chain *rpctest.Chain) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text = []byte(strings.Replace(string(text), chain.URL(), chain.SocketURL(), 1))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// peakOf is the most memory that a process has had resident, without the pages of files, of which the kernel counts more
// for a program that was linked a moment ago.
func peakOf(t *testing.T, pid int) int {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("the peak of a process cannot be read here")
	}
	size := func(name string) int {
		found := regexp.MustCompile(name + `:\s*(\d+) kB`).FindSubmatch(raw)
		if found == nil {
			return 0 // it is just ending
		}
		kb, err := strconv.Atoi(string(found[1]))
		if err != nil {
			t.Fatal(err)
		}
		return kb << 10
	}
	return size("VmHWM") - size("RssFile")
}
