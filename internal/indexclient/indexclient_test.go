package indexclient_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"

	"repute"
	"repute/internal/indexclient"
)

// index answers every path with a status and a text, and keeps what it was asked.
func index(t *testing.T, status int, text string) (*indexclient.Client, *[]string) {
	t.Helper()
	asked := &[]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = append(*asked, r.URL.RequestURI())
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(text))
	}))
	t.Cleanup(s.Close)
	c, err := indexclient.New(s.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, asked
}

// TestScore: what is no score between -100 and 100 never becomes one, and bounds that are missing are
// the score's own value.
func TestScore(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]indexclient.Score{
		`{"score":60,"low":40,"high":70,"status":"rated","totalFeedback":3}`: {Value: 60, Low: 40, High: 70,
			Status: "rated", Feedback: 3},
		`{"score":-5,"feedbackCount":2}`: {Value: -5, Low: -5, High: -5, Feedback: 2},
		`{"score":10,"low":1}`:           {Value: 10, Low: 1, High: 10},
		`{"score":10,"tier":3}`:          {Value: 10, Low: 10, High: 10, Tier: 3},
		`{"score":10,"tier":"gold"}`:     {Value: 10, Low: 10, High: 10},
		`{"score":10,"tier":7}`:          {Value: 10, Low: 10, High: 10},
	} {
		c, asked := index(t, 200, text)
		if s, err := c.Score(t.Context(), 7, "42"); err != nil || s != want {
			t.Errorf("%s: %+v, %v", text, s, err)
		}
		if !slices.Equal(*asked, []string{"/agents/42/reputation?chainId=7"}) {
			t.Errorf("asked %v", *asked)
		}
	}
	for _, text := range []string{`{}`, `{"low":40,"status":"rated"}`, `{"score":null}`, `{"score":101}`,
		`{"score":"60"}`,
		`[]`, `<html>`, ``, `{"score":6` + strings.Repeat("0", 400) + `}`} {
		c, _ := index(t, 200, text)
		if s, err := c.Score(t.Context(), 0, "7:42"); !errors.Is(err, repute.ErrUnavailable) {
			t.Errorf("%.40s: %+v, %v", text, s, err)
		}
	}
}

// TestKinds: an unknown agent is not found; every other failure, and a redirect, is an index that is
// not available.
func TestKinds(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]error{404: repute.ErrNotFound, 500: repute.ErrUnavailable,
		302: repute.ErrUnavailable, 429: repute.ErrUnavailable, 201: repute.ErrUnavailable} {
		c, asked := index(t, status, `{"score":60,"items":[]}`)
		if _, err := c.Score(t.Context(), 0, "7:42"); !errors.Is(err, want) {
			t.Errorf("%d: %v", status, err)
		}
		if _, err := c.Agents(t.Context(), 7, "wallet", "0x1"); !errors.Is(err, want) {
			t.Errorf("%d: %v", status, err)
		}
		if _, err := c.Proven(t.Context(), "7:42", "a.example"); !errors.Is(err, want) {
			t.Errorf("%d: %v", status, err)
		}
		if len(*asked) != 3 {
			t.Errorf("%d: %v", status, *asked)
		}
	}
	for _, base := range []string{"", "a", "ftp://a.example", "http://"} {
		if _, err := indexclient.New(base, nil); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%q: %v", base, err)
		}
	}
	gone, err := indexclient.New("http://127.0.0.1:1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gone.Score(t.Context(), 0, "7:42"); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestAgents: the list is bounded whatever the index answers.
func TestAgents(t *testing.T) {
	t.Parallel()
	items := strings.Repeat(`{"id":"7:1"},`, 30)
	c, asked := index(t, 200, `{"items":[`+strings.TrimSuffix(items, ",")+`]}`)
	ids, err := c.Search(t.Context(), "a.example")
	if err != nil || len(ids) != indexclient.MaxFound || ids[0] != "7:1" {
		t.Errorf("%v, %v", ids, err)
	}
	if _, err := c.Agents(t.Context(), 7, "wallet", "0xAb"); err != nil {
		t.Error(err)
	}
	if want := []string{"/agents?limit=10&q=a.example", "/chains/7/agents?limit=50&wallet=0xAb"}; !slices.Equal(*asked,
		want) {
		t.Errorf("asked %v", *asked)
	}
}

// TestProven: only the verdict proven of the same host counts.
func TestProven(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"domainProofs":[{"domain":"A.example","verdict":"proven"}]}`:  true,
		`{"domainProofs":[{"domain":"b.example","verdict":"proven"}]}`:  false,
		`{"domainProofs":[{"domain":"a.example","verdict":"refused"}]}`: false,
		`{}`: false,
	} {
		c, _ := index(t, 200, text)
		if got, err := c.Proven(t.Context(), "eip155:7:0xa:1", "a.example"); err != nil || got != want {
			t.Errorf("%s: %t, %v", text, got, err)
		}
	}
}

// TestAllAgents: all agents of an account are listed over pages, and an account with more than the bound is refused,
// also by an index whose pages never end.
func TestAllAgents(t *testing.T) {
	t.Parallel()
	for n, most := range map[int]bool{0: true, 1: true, 50: true, 51: true, 100: true, 101: false, 5000: false} {
		pages := 0
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			pages++
			from, _ := strconv.Atoi(r.URL.Query().Get("cursor"))
			limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
			items, next := []string{}, "null"
			for i := from; i < min(n, from+limit); i++ {
				items = append(items, fmt.Sprintf(`{"id":"7:%d"}`, i))
			}
			if from+limit < n {
				next = fmt.Sprintf("%q", strconv.Itoa(from+limit))
			}
			fmt.Fprintf(w, `{"items":[%s],"next":%s}`, strings.Join(items, ","), next)
		}))
		defer s.Close()
		c, err := indexclient.New(s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := c.Agents(t.Context(), 7, "wallet", "0xa")
		if most && (err != nil || len(ids) != n || n > 0 && ids[n-1] != fmt.Sprintf("7:%d", n-1)) ||
			!most && (!errors.Is(err, repute.ErrLimited) || ids != nil) || pages > 3 {
			t.Errorf("%d agents: %d listed over %d pages, %v", n, len(ids), pages, err)
		}
	}
}
