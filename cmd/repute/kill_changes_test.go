package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"repute/api/wire"
	"repute/api/wire/push"
	"repute/internal/freeport"
	"repute/internal/pgtest"
	"repute/internal/rpctest"
)

// reader is a consumer of the change feed. It asks a server that may be dead, and continues after the last cursor it
// saw.
type reader struct {
	url string

	mu    sync.Mutex
	since string
	list  []push.Change
}

// read reads pages until stop is closed.
func (r *reader) read(stop <-chan struct{}) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		if page, err := r.page(); err != nil || page.Next == r.since {
			time.Sleep(5 * time.Millisecond) // it is dead, or nothing is new
		} else {
			r.mu.Lock()
			r.list, r.since = append(r.list, page.Changes...), page.Next
			r.mu.Unlock()
		}
	}
}

// page asks for the next page. An answer that was cut off by a kill is an error.
func (r *reader) page() (page push.ChangeList, err error) {
	url := r.url + "/changes?limit=3"
	if r.since != "" {
		url += "&since=" + r.since
	}
	res, err := http.Get(url)
	if err != nil {
		return page, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return page, fmt.Errorf("status %d", res.StatusCode)
	}
	return page, json.NewDecoder(res.Body).Decode(&page)
}

// all returns the changes so far.
func (r *reader) all() []push.Change {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.list)
}

// agents returns the agents that follow from the changes: owner, URI and number of ratings, by id.
func (r *reader) agents(t *testing.T) map[string]string {
	t.Helper()
	list, gone := r.all(), map[string]bool{}
	for _, c := range list {
		if c.Retracts != nil {
			gone[*c.Retracts] = true
		}
	}
	list = slices.DeleteFunc(list,
		func(c push.Change) bool { return gone[c.Cursor] || c.Retracts != nil || c.Agent == nil })
	slices.SortStableFunc(list, func(a, b push.Change) int {
		return cmp.Or(cmp.Compare(a.Block, b.Block), cmp.Compare(a.LogIndex, b.LogIndex))
	})
	owner, uri, ratings := map[string]string{}, map[string]string{}, map[string]int{}
	for _, c := range list {
		var d struct {
			Owner string
			URI   *struct{ Text string }
		}
		if err := json.Unmarshal(c.Data, &d); err != nil {
			t.Fatalf("%s: %v", c.Data, err)
		}
		id := string(*c.Agent)
		switch c.Kind {
		case "agent.transferred":
			owner[id] = strings.ToLower(d.Owner)
		case "agent.registered", "agent.uri":
			if d.URI != nil {
				uri[id] = d.URI.Text
			}
		case "feedback.given":
			ratings[id]++
		}
	}
	out := map[string]string{}
	for id := range owner {
		out[id] = fmt.Sprintf("%s %s %d", owner[id], uri[id], ratings[id])
	}
	return out
}

// listed returns the same of the lists of a server.
func listed(t *testing.T, url string) map[string]string {
	t.Helper()
	code, body := fetch(t, url+"/agents?limit=200")
	var list wire.AgentList
	if err := json.Unmarshal([]byte(body), &list); err != nil || code != http.StatusOK || list.Next != nil {
		t.Fatalf("lists: %d, %v, %.300s", code, err, body)
	}
	out := map[string]string{}
	for _, a := range list.Items {
		out[string(a.ShortID)] = fmt.Sprintf("%s %s %d", strings.ToLower(string(a.Owner)), a.URI, a.Counts.Feedback)
	}
	return out
}

// shuffled is a chain that is reorganized now and then.
type shuffled struct {
	*rpctest.Chain
	salt uint64
}

// grow adds a few blocks, and often takes some of the newest ones back before.
func (c *shuffled) grow() {
	more := 1 + rand.IntN(5)
	if head := c.Head().Number(); head > 10 && rand.IntN(3) > 0 {
		c.Fork(head - uint64(more))
		more++ // the other branch is the longer one
	}
	for range more {
		c.salt++
		agent, client := rand.Uint64N(3), 100+c.salt // who rates once
		switch c.salt % 3 {
		case 0:
			c.Mine(c.SetURI(agent, rpctest.Account(1), fmt.Sprint("data:,", c.salt)))
		default:
			c.Mine(c.Feedback(agent, rpctest.Account(client), 1, int64(c.salt%100), "starred"))
		}
	}
}

// A consumer that follows the changes from the first one through reorganizations, while the process that indexes and
// serves is killed (kill -9) at random moments and started again, ends with the state that the lists give.
func TestChangesThroughKills(t *testing.T) {
	const kills = 6
	chain := &shuffled{Chain: rpctest.New(t, rpctest.Options{})}
	for agent := range uint64(3) {
		chain.Mine(chain.Register(agent, rpctest.Account(1), "data:,first"))
	}
	listen, database := freeport.Address(t), pgtest.New(t)
	config := filepath.Join(t.TempDir(), "repute.yaml")
	text := fmt.Sprintf("database: %q\nlisten: %s\nroles: [indexer, api]\nrate: -1\nchains:\n  - {name: busy, id: 31337, "+
		"identity: %q, reputation: %q, start_block: 0, rpc: %q}\n", database, listen, chain.Identity, chain.Reputation,
		chain.URL())
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, stop, stopped := &reader{url: "http://" + listen}, make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		r.read(stop)
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	wait := func(what string, out fmt.Stringer, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(2 * time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("never: %s; the program says:\n%s", what, out)
			}
		}
	}
	for range kills {
		cmd, out := child(t, "serve", "--config", config)
		from := len(r.all())
		chain.grow()
		wait("more changes", out, func() bool { return len(r.all()) > from })
		chain.grow()
		time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond) // the moment of the kill
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
	}
	_, out := child(t, "serve", "--config", config)
	chain.Mine(chain.SetURI(0, rpctest.Account(1), "data:,last"))
	wait("the last change", out, func() bool { return strings.Contains(r.agents(t)["31337:0"], " data:,last ") })
	if got, want := r.agents(t), listed(t, r.url); len(want) != 3 || !maps.Equal(got, want) {
		t.Errorf("the changes give\n%v, the lists\n%v", got, want)
	}
	if !slices.ContainsFunc(r.all(), func(c push.Change) bool { return c.Retracts != nil }) {
		t.Error("nothing was taken back")
	}
}
