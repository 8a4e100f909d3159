package webhooks

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"pgregory.net/rapid"

	"repute"
	"repute/api/wire"
	"repute/api/wire/push"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/clitest"
)

// server answers every request with one status and body, and keeps the last request as "METHOD path body".
type server struct {
	*httptest.Server
	status      int
	body, asked string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{status: http.StatusOK, body: "{}"}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		s.asked = strings.TrimSpace(r.Method + " " + r.URL.EscapedPath() + " " + string(body))
		w.WriteHeader(s.status)
		_, _ = w.Write([]byte(s.body))
	}))
	t.Cleanup(s.Close)
	return s
}

// run runs a command against the server and returns what it printed.
func (s *server) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out := &clitest.Output{}
	err := clitest.Run(t.Context(), out, func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{Command(p)}
	}, append(append([]string{"webhooks"}, args...), "--orchestrator", s.URL)...)
	return out.String(), err
}

// Each command asks the route that it is named after. A flag that was not given is absent from the body, and one that
// was given with its zero value is there: --below 0 and --since "" mean something.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, c := range []struct {
		args string
		want string
	}{
		{"list", "GET /v1/webhooks"},
		{"add https://a.example/h", `POST /v1/webhooks {"url":"https://a.example/h","filter":{}}`},
		{"add https://a.example/h --below 0 --since=",
			`POST /v1/webhooks {"url":"https://a.example/h","filter":{"below":0},"since":""}`},
		{"add https://a.example/h --above -5.5 --since 12",
			`POST /v1/webhooks {"url":"https://a.example/h","filter":{"above":-5.5},"since":"12"}`},
		{"add https://a.example/h --kinds a,b --kinds c --tier --finality finalized --agent 8453:22 --chain 8453",
			`POST /v1/webhooks {"url":"https://a.example/h","filter":{"agent":"8453:22","chain":8453,` +
				`"kinds":["a","b","c"],"tier":true,"finality":"finalized"}}`},
		{"test wh_1", "POST /v1/webhooks/wh_1/test"},
		{"replay wh_1", "POST /v1/webhooks/wh_1/replay {}"},
		{"replay wh_1 --since=", `POST /v1/webhooks/wh_1/replay {"since":""}`},
		{"rotate wh_1", "POST /v1/webhooks/wh_1/rotate"},
		{"remove wh_1", "DELETE /v1/webhooks/wh_1"},
		{"remove ../tasks/x?a=b#c", "DELETE /v1/webhooks/..%2Ftasks%2Fx%3Fa=b%23c"},
	} {
		if _, err := s.run(t, strings.Fields(c.args)...); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
		if s.asked != c.want {
			t.Errorf("%s\nasked %s\nwant  %s", c.args, s.asked, c.want)
		}
	}
}

// The server's refusal ends every command with its kind, and nothing is printed as if it had been done.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.body = `{"detail":"no webhook wh_1","hint":"see list"}`
	for status, kind := range map[int]error{401: repute.ErrInvalid, 404: repute.ErrNotFound, 409: repute.ErrConflict,
		503: repute.ErrUnavailable} {
		s.status = status
		for _, args := range []string{"list", "add https://a.example", "test wh_1", "replay wh_1", "rotate wh_1",
			"remove wh_1"} {
			if out, err := s.run(t, strings.Fields(args)...); !errors.Is(err, kind) || out != "" {
				t.Errorf("%s with status %d: %v, printed %q", args, status, err, out)
			}
		}
	}
}

// A test that the receiver refused ends the command with 1, so that a script sees it, and its reason is made safe.
func TestTestOfReceiver(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.body = `{"status":200,"millis":12,"reason":""}`
	if out, err := s.run(t, "test", "wh_1"); err != nil || out != "accepted with status 200 after 12 ms\n" {
		t.Errorf("accepted: %q, %v", out, err)
	}
	s.body = `{"status":500,"millis":12,"reason":"status 500: \u001b[2Joops"}`
	out, err := s.run(t, "test", "wh_1")
	var exit cli.ExitError
	if !errors.As(err, &exit) || exit.Code != 1 || exit.Text != "refused: status 500: \ufffd[2Joops" || out != "" {
		t.Errorf("refused: %q, %v", out, err)
	}
}

// The secret is shown by add and rotate alone. A list shows each webhook in a line and what is wrong with it in
// another.
func TestShown(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.body = `{"id":"wh_1","secret":"whsec_x"}`
	for _, args := range []string{"add https://a.example", "rotate wh_1"} {
		if out, err := s.run(t, strings.Fields(args)...); err != nil || out != "wh_1\nsecret whsec_x\n" {
			t.Errorf("%s: %q, %v", args, out, err)
		}
	}
	if out, err := s.run(t, "rotate", "wh_1", "--json"); err != nil || !strings.Contains(out, `"secret": "whsec_x"`) {
		t.Errorf("as JSON: %q, %v", out, err)
	}
	s.body = `{"webhooks":[]}`
	if out, err := s.run(t, "list"); err != nil || out != "there are no webhooks\n" {
		t.Errorf("no webhooks: %q, %v", out, err)
	}
	s.body = `{"webhooks":[
		{"id":"wh_1","url":"https://a.example","state":"active","delivered":3,"filter":{"tier":true}},
		{"id":"wh_2","url":"https://b.example/\u001b[2J","state":"disabled","reason":"gone","cursor":"c","filter":{}},
		{"id":"wh_3","url":"https://c.example","state":"failing","cursor":"c","filter":{},
			"failure":{"attempts":2,"since":"A","nextAt":"B","reason":"why"}}]}`
	const want = "wh_1 active        3 sent, at the beginning  https://a.example  --tier\n" +
		"wh_2 disabled      0 sent, at c  https://b.example/\ufffd[2J  \n  gone\n" +
		"wh_3 failing       0 sent, at c  https://c.example  \n  refused 2 times since A, again at B: why\n"
	if out, err := s.run(t, "list"); err != nil || out != want {
		t.Errorf("got\n%s\nwant\n%s, %v", out, want, err)
	}
}

// A filter is shown as the flags that make it: given to add again they make the same one.
func TestFiltersAreShownAsFlags(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z][a-z0-9.]{0,8}`)
		f := push.WebhookFilter{
			Agent:    rapid.SampledFrom([]string{"", "8453:22", "eip155:1:0xab:7"}).Draw(t, "agent"),
			Chain:    wire.Long(rapid.Uint64Range(0, 1<<50).Draw(t, "chain")),
			Tier:     rapid.Bool().Draw(t, "tier"),
			Finality: rapid.SampledFrom([]string{"", "latest", "finalized"}).Draw(t, "finality"),
		}
		if kinds := rapid.SliceOfN(word, 0, 4).Draw(t, "kinds"); len(kinds) > 0 {
			f.Kinds = kinds
		}
		bound := rapid.Float64Range(-100, 100)
		if rapid.Bool().Draw(t, "has below") {
			v := bound.Draw(t, "below")
			f.Below = &v
		}
		if rapid.Bool().Draw(t, "has above") {
			v := bound.Draw(t, "above")
			f.Above = &v
		}
		var flags filterFlags
		set := pflag.NewFlagSet("test", pflag.ContinueOnError)
		flags.add(set)
		if err := set.Parse(strings.Fields(describe(&f))); err != nil {
			t.Fatalf("%q: %v", describe(&f), err)
		}
		if got := flags.filter(set); !reflect.DeepEqual(got, f) {
			t.Fatalf("%q makes %+v, want %+v", describe(&f), got, f)
		}
	})
}
