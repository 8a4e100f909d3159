package governance_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"repute"
	"repute/agent/governance"
)

// draw is a policy whose rules are formatted from drawn values.
func draw(t *rapid.T, rules string, args ...any) *governance.Policy {
	p, err := governance.Parse(fmt.Appendf(nil, `{"version":"1.0","agentId":1,"rules":{`+rules+`}}`, args...))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// owner accepts one signature for one hash.
type owner struct {
	hash      common.Hash
	signature string
	err       error
}

func (o *owner) VerifyPolicy(_ context.Context, hash common.Hash, signature []byte) error {
	if o.err != nil {
		return o.err
	}
	if hash != o.hash || string(signature) != o.signature {
		return repute.Invalid("signature", "is of another signer", "the agent's owner")
	}
	return nil
}

// text is a source that tests change.
type text string

func (s *text) Read(context.Context) ([]byte, error) { return []byte(*s), nil }

func TestLoaderKeepsTheLastGoodPolicy(t *testing.T) {
	t.Parallel()
	source := text(sample)
	good := parse(t, sample)
	o := &owner{hash: good.Hash(), signature: "\x01\xff"}
	clock := noon
	l, err := governance.NewLoader(governance.LoaderOptions{Source: &source, Verifier: o, AgentID: "42",
		Now: func() time.Time { return clock }})
	if err != nil {
		t.Fatal(err)
	}
	if l.Current().Policy != nil {
		t.Fatal("a policy before any was read")
	}
	if changed, err := l.Load(t.Context()); err != nil || !changed || !l.Current().Signed {
		t.Fatalf("the first: %t, %v", changed, err)
	}
	clock = noon.Add(time.Hour)
	tests := []struct{ name, text, want string }{
		{"broken", sample[:100], "policy:"},
		{"an unknown member", strings.Replace(sample, "refundPolicy", "refund", 1), "policy/rules/payment/refund:"},
		{"another agent's", strings.Replace(sample, "42", "43", 1), "agentId: the policy is of agent 43"},
		{"signed by another", strings.Replace(sample, "01ff", "02ff", 1), "is of another signer"},
		{"changed after it was signed", strings.Replace(sample, "-10", "-11", 1), "is of another signer"},
		{"unsigned", strings.Replace(sample, `"0x01ff"`, `""`, 1), "signature: missing"},
	}
	for _, tt := range tests {
		source = text(tt.text)
		changed, err := l.Load(t.Context())
		got := l.Current()
		if changed || err == nil || !strings.Contains(err.Error(), tt.want) ||
			!errors.Is(got.Problem, repute.ErrInvalid) {
			t.Errorf("%s: %t, %v", tt.name, changed, err)
		}
		if got.Policy.Hash() != good.Hash() || !got.Since.Equal(noon) {
			t.Errorf("%s: another policy counts", tt.name)
		}
	}
	source = text("// a comment\n" + sample)
	if changed, err := l.Load(t.Context()); changed || err != nil || l.Current().Problem != nil {
		t.Errorf("the same policy in another layout: %t, %v", changed, err)
	}
	o.err = fmt.Errorf("node: %w", repute.ErrUnavailable)
	if _, err := l.Load(t.Context()); !errors.Is(err, repute.ErrUnavailable) || l.Current().Policy == nil {
		t.Errorf("a chain that cannot be asked: %v", err)
	}
}

func TestLoaderAllowsUnsigned(t *testing.T) {
	t.Parallel()
	if _, err := governance.NewLoader(governance.LoaderOptions{AgentID: "42"}); err == nil {
		t.Error("a loader without a verifier")
	}
	source := text(strings.Replace(sample, `"0x01ff"`, `""`, 1))
	l, err := governance.NewLoader(governance.LoaderOptions{Source: &source, AgentID: "42", AllowUnsigned: true,
		Verifier: &owner{}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Load(t.Context()); err != nil || l.Current().Signed {
		t.Errorf("unsigned: %v", err)
	}
	source = text(sample)
	if _, err := l.Load(t.Context()); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a wrong signature where none is needed: %v", err)
	}
}

func TestSources(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "policy.json")
	if _, err := governance.FileSource(path).Read(t.Context()); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("a file that is not there: %v", err)
	}
	if err := os.WriteFile(path, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := governance.FileSource(path).Read(t.Context()); err != nil || string(got) != sample {
		t.Errorf("the file: %v", err)
	}
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/policy.json":
			fmt.Fprint(w, sample)
		case "/long":
			fmt.Fprint(w, strings.Repeat(" ", 10<<20))
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	read := func(url string) ([]byte, error) {
		source, err := governance.NewURLSource(url, s.Client())
		if err != nil {
			return nil, err
		}
		return source.Read(t.Context())
	}
	if got, err := read(s.URL + "/policy.json"); err != nil || string(got) != sample {
		t.Errorf("the URL: %v", err)
	}
	long, err := read(s.URL + "/long")
	if _, parsed := governance.Parse(long); err != nil || len(long) > 1<<20 || !errors.Is(parsed, repute.ErrInvalid) {
		t.Errorf("a long answer: %d bytes, %v", len(long), err)
	}
	if _, err := read(s.URL + "/none"); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("an answer 404: %v", err)
	}
	if _, err := read("http://a.example/policy.json"); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("plain http: %v", err)
	}
}

// anyOwner accepts every signature.
type anyOwner struct{}

func (anyOwner) VerifyPolicy(context.Context, common.Hash, []byte) error { return nil }

// TestLoaderRefusesOldPolicies: the server of the file cannot bring back a signed policy that the owner replaced, in
// this process or the next one.
func TestLoaderRefusesOldPolicies(t *testing.T) {
	t.Parallel()
	written := func(issued, rules string) string {
		return `{"version":"1.0","agentId":42,` + issued + `"rules":{` + rules + `},"signature":"0x01"}`
	}
	at := func(hour int) string { return fmt.Sprintf(`"issuedAt":"2026-11-24T%02d:00:00Z",`, hour) }
	strict, loose := `"payment":{"freeTierRateLimit":1}`, `"payment":{"freeTierRateLimit":1000}`
	kept := &history{}
	clock := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	source := text("")
	open := func() *governance.Loader {
		l, err := governance.NewLoader(governance.LoaderOptions{Source: &source, Verifier: anyOwner{}, AgentID: "42",
			History: kept, Now: func() time.Time { return clock }})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	l := open()
	for i, tt := range []struct {
		text, want string
		restart    bool
	}{
		{written("", loose), "", false},
		{written("", strict), "", false}, // without a time nothing is known of the order
		{written(at(8), loose), "", false},
		{written(at(10), strict), "", false},
		{written(at(8), loose), "is not after 2026-11-24T10:00:00Z", false},
		{written(at(8), loose), "is not after", true},
		{written("", loose), "issuedAt: is missing", true},
		{written(at(10), loose), "is not after", false}, // two policies of one time have no order
		{written(at(10), strict), "", true},
		{written(at(13), loose), "is in the future", false},
		{written(at(11), loose), "", false},
	} {
		if tt.restart {
			l = open()
		}
		source = text(tt.text)
		_, err := l.Load(t.Context())
		if (err == nil) != (tt.want == "") ||
			err != nil && (!errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%d: %v, want %q", i, err, tt.want)
		}
	}
	stored := kept.added
	clock = clock.Add(25 * time.Hour)
	if _, err := l.Load(t.Context()); err != nil || kept.added != stored+1 {
		t.Errorf("a policy that stays is stored %d times more: %v", kept.added-stored, err)
	}
	kept.err = fmt.Errorf("database: %w", repute.ErrUnavailable)
	if _, err := open().Load(t.Context()); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("without what was in force: %v", err)
	}
}

// history is a database.
type history struct {
	last  governance.Issue
	added int
	err   error
}

// LastPolicy implements governance.History.
func (h *history) LastPolicy(context.Context) (governance.Issue, error) { return h.last, h.err }

// AddPolicy implements governance.History.
func (h *history) AddPolicy(_ context.Context, i governance.Issue) error {
	h.last, h.added = i, h.added+1
	h.last.Stored = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	return nil
}
