package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute"
	"repute/orchestrator/outbound"
	"repute/orchestrator/remote"
	"repute/orchestrator/transaction"
)

// maxQuestion bounds requests of a runtime, in bytes.
const maxQuestion = 8 << 20

// Handler serves an agent by the protocol repute-agent/1, for orchestrators in other processes. It keeps nothing
// between requests, and checks no callers: a caller that can reach it learns what the agent would do, and no more,
// since every call is made by the runtime that asks.
func Handler(a Agent) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /info", func(w http.ResponseWriter, _ *http.Request) {
		i := a.Info()
		reply(w, http.StatusOK, remote.Info{Protocol: remote.Protocol, Slug: i.Slug, DisplayName: i.DisplayName,
			Version:      i.Version,
			IdentityMode: i.IdentityMode, DryRun: true, Manifest: i.Manifest})
	})
	mux.HandleFunc("POST /{method}", func(w http.ResponseWriter, r *http.Request) {
		var q remote.Question
		err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxQuestion)).Decode(&q)
		if err != nil || q.Protocol != remote.Protocol {
			reply(w, http.StatusBadRequest, remote.Answer{Error: "the question is none of " + remote.Protocol})
			return
		}
		status, answer := respond(r.Context(), a, r.PathValue("method"), q)
		reply(w, status, answer)
	})
	return mux
}

// reply writes a JSON answer.
func reply(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the runtime went away: it asks again
}

// respond calls a method. Where it wants a call that has no outcome yet, the method ends there, and the call is the
// answer. The method has a goroutine of its own, because Goexit ends it without running what follows the call.
func respond(ctx context.Context, a Agent, method string, q remote.Question) (int, remote.Answer) {
	w := &asking{outcomes: q.Outcomes}
	var result any
	var err error
	ended := make(chan bool, 1)
	go func() {
		finished := false
		defer func() { // also when the method ends by Goexit
			if v := recover(); v != nil {
				result, err, finished = nil, fmt.Errorf("the agent panicked: %.200v", v), true
			}
			ended <- finished
		}()
		result, err = a.answer(ctx, method, q, w)
		finished = true
	}()
	switch finished := <-ended; {
	case !finished && w.wanted != nil:
		return http.StatusOK, remote.Answer{Calls: []remote.Call{*w.wanted}}
	case result == nil && err == nil:
		return http.StatusNotFound, remote.Answer{Error: fmt.Sprintf("there is no method %.40q", method)}
	case err != nil:
		return http.StatusOK, remote.Answer{Error: err.Error()}
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return http.StatusOK, remote.Answer{Error: err.Error()}
	}
	return http.StatusOK, remote.Answer{Result: raw}
}

// asking is a World whose calls are made by the runtime: earlier calls have their outcomes in the
// request; the first call without an outcome ends the method.
type asking struct {
	outcomes []remote.Outcome
	wanted   *remote.Call
}

// next returns the outcome of a call.
func (a *asking) next(c remote.Call, into any) error {
	if len(a.outcomes) == 0 {
		a.wanted = &c
		runtime.Goexit() // an error could be mistaken for one of the call
	}
	o := a.outcomes[0]
	a.outcomes = a.outcomes[1:]
	if o.Error != "" {
		return fmt.Errorf("%.2000s: %w", o.Error, repute.ErrUnavailable)
	}
	if raw, ok := into.(*json.RawMessage); ok {
		*raw = o.Result
		return nil
	}
	return json.Unmarshal(o.Result, into)
}

// Tool implements World.
func (a *asking) Tool(_ context.Context, name string, input json.RawMessage) (out json.RawMessage, err error) {
	return out, a.next(remote.Call{Kind: "tool", Tool: name, Input: input}, &out)
}

// HTTP implements World.
func (a *asking) HTTP(_ context.Context, q outbound.HTTPRequest) (out outbound.HTTPResponse, err error) {
	return out, a.next(remote.Call{Kind: "http", HTTP: &q}, &out)
}

// Pay implements World.
func (a *asking) Pay(_ context.Context, q outbound.PaidRequest) (out outbound.PaidResponse, err error) {
	return out, a.next(remote.Call{Kind: "pay", Pay: &q}, &out)
}

// Read implements World.
func (a *asking) Read(_ context.Context, chainID uint64, to common.Address, data []byte) ([]byte, error) {
	var out hexutil.Bytes
	err := a.next(remote.Call{Kind: "read", Read: &remote.Read{ChainID: chainID, To: to.Hex(),
		Data: hexutil.Encode(data)}}, &out)
	return out, err
}

// Send implements World.
func (a *asking) Send(_ context.Context, tx transaction.Tx) (out transaction.Sent, err error) {
	return out, a.next(remote.Call{Kind: "send", Tx: &tx}, &out)
}
