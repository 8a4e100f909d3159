package resolver

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestFetchIfChanged(t *testing.T) {
	version := `"v1"`
	const date = "Mon, 02 Jan 2006 15:04:05 GMT"
	c, base := site(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=600")
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/tag", http.StatusFound)
			return
		case "/tag", "/mute":
			if r.Header.Get("If-None-Match") == version {
				if r.URL.Path == "/tag" {
					w.Header().Set("ETag", version)
				}
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("ETag", version)
		case "/date":
			if r.Header.Get("If-Modified-Since") == date {
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("Last-Modified", date)
		}
		fmt.Fprint(w, sample)
	})
	for _, path := range []string{"/tag", "/mute", "/date", "/moved"} {
		first, err := c.Fetch(t.Context(), base+path)
		if err != nil || first.NotModified || string(first.Bytes) != sample || first.FreshFor != 10*time.Minute {
			t.Fatalf("%s: %+v, %v", path, first, err)
		}
		again, err := c.FetchIfChanged(t.Context(), base+path, Validators{first.ETag, first.LastModified})
		if err != nil || !again.NotModified || again.Bytes != nil || again.ETag != first.ETag ||
			again.LastModified != first.LastModified || again.FinalURL != first.FinalURL || again.FetchedAt.IsZero() {
			t.Errorf("%s again: %+v, %v", path, again, err)
		}
		other, err := c.FetchIfChanged(t.Context(), base+path, Validators{ETag: `"v0"`})
		if err != nil || other.NotModified || string(other.Bytes) != sample {
			t.Errorf("%s with another tag: %+v, %v", path, other, err)
		}
	}
	// Forms that cannot change have no use for validators.
	doc, err := c.FetchIfChanged(t.Context(), "data:,"+sample, Validators{ETag: version})
	if err != nil || doc.NotModified || string(doc.Bytes) != sample {
		t.Errorf("data: %+v, %v", doc, err)
	}
}

// A validator that is no header value is not sent, and does not break the request.
func TestFetchIfChangedBadValidators(t *testing.T) {
	var sent string
	c, base := site(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		sent += r.Header.Get("If-None-Match") + r.Header.Get("If-Modified-Since")
		fmt.Fprint(w, sample)
	})
	for _, bad := range []string{"a\r\nX-Evil: 1", "\x00", "\xff", strings.Repeat("x", maxShortText+1)} {
		if _, err := c.FetchIfChanged(t.Context(), base, Validators{bad, bad}); err != nil || sent != "" {
			t.Errorf("%.20q: sent %q, %v", bad, sent, err)
		}
	}
}

func TestFreshFor(t *testing.T) {
	for _, c := range []struct {
		control, age string
		want         time.Duration
	}{
		{"", "", 0},
		{"public", "", 0},
		{"max-age=x", "", 0},
		{"max-age=3600", "", time.Hour},
		{`private, Max-Age="3600"`, "", time.Hour},
		{"max-age=3600", "600", 50 * time.Minute},
		{"max-age=3600", "-600", time.Hour},
		{"max-age=3600", "99999999", minFresh},
		{"max-age=1", "", minFresh},
		{"max-age=-1", "", minFresh},
		{"max-age=2000000000", "", maxFresh},
		{"max-age=99999999999999999999", "", 0},
		{"no-store", "", minFresh},
		{"no-cache, max-age=86400", "", minFresh},
	} {
		h := http.Header{"Cache-Control": {c.control}, "Age": {c.age}}
		if got := freshFor(h); got != c.want {
			t.Errorf("%q aged %q: %s, want %s", c.control, c.age, got, c.want)
		}
	}
}

// A body that drips has not the whole time of an exchange.
func TestFetchDrip(t *testing.T) {
	done := make(chan struct{})
	c, base := site(t, Options{Timeout: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte("x")); err != nil {
				break
			}
			_ = http.NewResponseController(w).Flush()
			select {
			case <-done:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	defer close(done)
	c.pace = 200 * time.Millisecond
	_, err := c.Fetch(t.Context(), base)
	if e, ok := err.(*Error); !ok || e.Reason != ReasonTooSlow || !e.Retry ||
		!strings.Contains(e.Detail(), "too slowly") {
		t.Errorf("got %v", err)
	}
}

// A slow body that makes progress is read to its end, however many windows it takes.
func TestFetchSteadyBody(t *testing.T) {
	const parts = 15
	c, base := site(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		for range parts {
			fmt.Fprint(w, strings.Repeat("x", 4*minProgress))
			_ = http.NewResponseController(w).Flush()
			time.Sleep(100 * time.Millisecond)
		}
	})
	c.pace = time.Second
	doc, err := c.Fetch(t.Context(), base)
	if err != nil || len(doc.Bytes) != parts*4*minProgress {
		t.Errorf("%d bytes, %v", len(doc.Bytes), err)
	}
}

func TestFetchLongHeader(t *testing.T) {
	c, base := site(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Flood", strings.Repeat("x", maxHeaderBytes+1024))
		fmt.Fprint(w, sample)
	})
	if _, err := c.Fetch(t.Context(), base); reasonOf(err) != ReasonTooLarge {
		t.Errorf("got %v", err)
	}
}
