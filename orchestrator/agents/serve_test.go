package agents_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"repute/contracts/bindings"
	"repute/orchestrator/agents"
	"repute/orchestrator/outbound"
	"repute/orchestrator/remote"
	"repute/orchestrator/standard"
)

// asked posts a question and reads the answer.
func asked(t *testing.T, url string, q any) (status int, a remote.Answer) {
	t.Helper()
	body, err := json.Marshal(q)
	ok(t, err)
	res, err := http.Post(url, "application/json", bytes.NewReader(body))
	ok(t, err)
	defer res.Body.Close()
	ok(t, json.NewDecoder(res.Body).Decode(&a))
	return res.StatusCode, a
}

// A step that is asked again with the same outcomes wants the same transaction, byte for
// byte: a crash between journal and chain changes nothing.
func TestSameCallsAgain(t *testing.T) {
	t.Parallel()
	a, err := agents.New(agents.Reporter, agents.Self{Wallet: common.HexToAddress("0x07")},
		agents.Options{Chains: []agents.Chain{
			{ID: 7, Identity: common.HexToAddress("0x08"), Reputation: common.HexToAddress("0x09")}}})
	ok(t, err)
	server := httptest.NewServer(agents.Handler(a))
	defer server.Close()
	identity := bindings.NewIdentityRegistry().GetABI()
	packed, err := identity.Methods["tokenURI"].Outputs.Pack(`{"services":[{"name":"web","endpoint":"https://agent.example/"}]}`)
	ok(t, err)
	outcome := func(v any) remote.Outcome {
		raw, err := json.Marshal(v)
		ok(t, err)
		return remote.Outcome{Result: raw}
	}
	q := remote.Question{Protocol: remote.Protocol,
		Task: standard.Task{ID: "t", Input: json.RawMessage(`{"agent":"7:3","requests":2}`)}}
	for i, next := range []remote.Outcome{outcome(hexutil.Bytes(packed)),
		outcome(outbound.HTTPResponse{Status: 200, ElapsedMS: 12}), {Error: "no route"}} {
		_, got := asked(t, server.URL+"/execute", q)
		if want := []string{"read", "http", "http"}[i]; len(got.Calls) != 1 || got.Calls[0].Kind != want {
			t.Fatalf("call %d: %+v, want a %s", i, got, want)
		}
		q.Outcomes = append(q.Outcomes, next)
	}
	_, first := asked(t, server.URL+"/execute", q)
	_, again := asked(t, server.URL+"/execute", q)
	if len(first.Calls) != 1 || first.Calls[0].Kind != "send" || !reflect.DeepEqual(first, again) {
		t.Fatalf("wants %+v, then %+v", first, again)
	}
	values, err := bindings.NewReputationRegistry().GetABI().Methods["giveFeedback"].Inputs.Unpack(first.Calls[0].Tx.Data[4:])
	ok(t, err)
	if got := values[1].(interface{ String() string }).String(); got != "5000" {
		t.Errorf("one of two requests answered, and the rate is %s", got)
	}
	q.Outcomes = append(q.Outcomes, remote.Outcome{Error: "refused"})
	if _, a := asked(t, server.URL+"/execute", q); a.Error == "" {
		t.Errorf("a refused transaction gives %+v", a)
	}
}

// A caller that does not speak the protocol gets an error in its form.
func TestHandlerRefuses(t *testing.T) {
	t.Parallel()
	for _, name := range agents.Names() {
		a, err := agents.New(name, agents.Self{}, agents.Options{})
		ok(t, err)
		server := httptest.NewServer(agents.Handler(a))
		defer server.Close()
		if status, a := asked(t, server.URL+"/plan", map[string]string{"protocol": "other"}); status != 400 ||
			a.Error == "" {
			t.Errorf("another protocol: %d %+v", status, a)
		}
		if status, a := asked(t, server.URL+"/sing", remote.Question{Protocol: remote.Protocol}); status != 404 ||
			a.Error == "" {
			t.Errorf("another method: %d %+v", status, a)
		}
		for _, method := range []string{"can-handle", "dry-run", "execute", "verify", "summarize"} {
			for _, input := range []string{`null`, `[]`, `{"agent":7}`, `{"input":null,"inputs":{}}`, `"x"`} {
				status, a := asked(t, server.URL+"/"+method,
					remote.Question{Protocol: remote.Protocol, Task: standard.Task{Input: json.RawMessage(input)}})
				if status != 200 || a.Error == "" && len(a.Result) == 0 ||
					bytes.Contains([]byte(a.Error), []byte("panicked")) {
					t.Errorf("%s of %s with %s: %d %+v", method, name, input, status, a)
				}
			}
		}
	}
	if _, err := agents.New("nobody", agents.Self{}, agents.Options{}); err == nil {
		t.Error("there is an agent nobody")
	}
}
