package chainserver

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// words is a source that returns the method's own name, and streams some.
type words struct{}

func (words) Answer(c *Call) (any, *Error) {
	switch c.Method {
	case "stream":
		return &Stream{Size: 3, Write: func(w io.Writer) (int64, error) {
			n, err := io.WriteString(w, "[1]")
			return int64(n), err
		}}, nil
	case "broken":
		return &Stream{Size: 3, Write: func(w io.Writer) (int64, error) {
			_, _ = io.WriteString(w, "[1")
			return 2, errors.New("the file ends here")
		}}, nil
	case "fail":
		return nil, Errorf(-32602, "invalid")
	}
	return c.Method, nil
}

func post(t testing.TB, url, body string) (int, string, http.Header, error) {
	t.Helper()
	resp, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(raw), resp.Header, err
}

func serve(t testing.TB) (*Server, string) {
	t.Helper()
	s := New(words{})
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	return s, srv.URL
}

// Calls and batches are answered in JSON-RPC, whatever the body is.
func TestAnswers(t *testing.T) {
	t.Parallel()
	s, url := serve(t)
	for body, want := range map[string]string{
		"{":                          `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`,
		"[]":                         `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"invalid request"}}`,
		`{"id":7,"method":"a"}`:      `{"jsonrpc":"2.0","id":7,"result":"a"}`,
		`{"id":"x","method":"fail"}`: `{"jsonrpc":"2.0","id":"x","error":{"code":-32602,"message":"invalid"}}`,
		` [{"id":1,"method":"stream"},{"id":2}] `: `[{"jsonrpc":"2.0","id":1,"result":[1]},` +
			`{"jsonrpc":"2.0","id":2,"result":""}]`,
	} {
		if _, got, header, err := post(t, url, body); err != nil || got != want || header.Get("Content-Length") == "" {
			t.Errorf("%s: %s, %v, want %s", body, got, err, want)
		}
	}
	if _, got, _, err := post(t, url, `{"method":"broken"}`); err == nil {
		t.Errorf("half an answer was taken for a whole one: %s", got)
	}
	if st := s.Stats(); st.Requests != 6 || st.Calls["stream"] != 1 || st.Calls["broken"] != 1 || st.Bytes == 0 {
		t.Errorf("%+v", st)
	}
}

// The first rule that answers counts, and undo ends a rule.
func TestFaults(t *testing.T) {
	t.Parallel()
	s, url := serve(t)
	undo := s.Inject(func(c Call) *Answer {
		if c.Method == "a" {
			return &Answer{Result: c.N}
		}
		return nil
	})
	s.Inject(LimitRange(500, Error{Code: -32614, Message: "limited to a 500 range"}))
	for _, c := range [][2]string{
		{`{"method":"a"}`, `"result":0`}, {`{"method":"a"}`, `"result":1`}, {`{"method":"b"}`, `"result":"b"`},
		{`{"method":"eth_getLogs","params":[{"fromBlock":"0x0","toBlock":"0x1f4"}]}`, "limited to a 500 range"},
		{`{"method":"eth_getLogs","params":[{"fromBlock":"0x1","toBlock":"0x1f4"}]}`, `"result":"eth_getLogs"`},
	} {
		if _, got, _, err := post(t, url, c[0]); err != nil || !strings.Contains(got, c[1]) {
			t.Errorf("%s: %s, %v", c[0], got, err)
		}
	}
	undo()
	if _, got, _, _ := post(t, url, `{"method":"a"}`); !strings.Contains(got, `"result":"a"`) {
		t.Errorf("after undo: %s", got)
	}
	s.LimitBatch(2, Answer{Error: &Error{Code: -32003, Message: "batch too large"}})
	if _, got, _, _ := post(t, url, `[{"id":1},{"id":2},{"id":3}]`); strings.Count(got, "batch too large") != 3 {
		t.Errorf("three calls: %s", got)
	}
	const latency = 30 * time.Millisecond
	s.Latency(latency)
	start := time.Now()
	if _, got, _, _ := post(t, url, `{"method":"b"}`); time.Since(start) < latency || !strings.Contains(got, `"b"`) {
		t.Errorf("%s after %s", got, time.Since(start))
	}
	s.GoDark(true)
	if _, got, _, err := post(t, url, `{"method":"b"}`); err == nil {
		t.Errorf("a dark server answered %s", got)
	}
}

// Requests above the rate are refused with a time to wait.
func TestRateLimit(t *testing.T) {
	t.Parallel()
	s, url := serve(t)
	s.RateLimit(5)
	limited := int64(0)
	for range 50 {
		status, _, header, err := post(t, url, `{"method":"a"}`)
		if err != nil {
			t.Fatal(err)
		}
		if status == http.StatusTooManyRequests {
			limited++
			if header.Get("Retry-After") == "" {
				t.Fatal("no Retry-After")
			}
		}
	}
	if st := s.Stats(); limited == 0 || limited != st.Limited || st.Requests != 50-limited {
		t.Errorf("%d limited, %+v", limited, st)
	}
}

// FuzzBody: whatever is sent, the answer is JSON.
func FuzzBody(f *testing.F) {
	for _, body := range []string{"", "{", "[]", "[1]", `{"id":[1],"method":"a","params":[{}]}`,
		`[{"id":"\u2028"},null]`} {
		f.Add(body)
	}
	s := New(words{})
	f.Fuzz(func(t *testing.T, body string) {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body)))
		if !json.Valid(w.Body.Bytes()) && !strings.Contains(body, "broken") {
			t.Errorf("%q is answered with %q", body, w.Body)
		}
	})
}
