package resolver

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func reasonOf(err error) Reason {
	var e *Error
	if errors.As(err, &e) {
		return e.Reason
	}
	return ""
}

func roots(srv *httptest.Server) *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return pool
}

func portOf(a netip.AddrPort) string { return strconv.Itoa(int(a.Port())) }

func client(t testing.TB, o Options) *Client {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// site starts a TLS server and a client that may reach it.
func site(t *testing.T, o Options, h http.HandlerFunc) (*Client, string) {
	t.Helper()
	srv := httptest.NewTLSServer(h)
	t.Cleanup(srv.Close)
	o.AllowPrefixes, o.RootCAs = loopback, roots(srv)
	return client(t, o), srv.URL
}

func TestFetchHTTPS(t *testing.T) {
	var got http.Header
	c, base := site(t, Options{UserAgent: "repute/test (+https://operator.example)"},
		func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/moved" {
				http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
				http.Redirect(w, r, "/a.json", http.StatusFound)
				return
			}
			got = r.Header.Clone()
			w.Header().Set("Content-Type", "Application/JSON; charset=utf-8")
			w.Header().Set("ETag", `"v1"`)
			w.Header().Set("Last-Modified", "Wed, 21 Oct 2015 07:28:00 GMT")
			fmt.Fprint(w, sample)
		})
	doc, err := c.Fetch(t.Context(), base+"/moved")
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(doc.FetchedAt); age < 0 || age > time.Minute {
		t.Errorf("FetchedAt is %s old", age)
	}
	doc.FetchedAt = time.Time{}
	want := Document{
		Bytes: []byte(sample), MediaType: "application/json", Source: SourceHTTPS, FinalURL: base + "/a.json",
		ETag: `"v1"`, LastModified: "Wed, 21 Oct 2015 07:28:00 GMT",
	}
	if fmt.Sprint(doc) != fmt.Sprint(want) {
		t.Errorf("got  %+v\nwant %+v", doc, want)
	}
	if got.Get("User-Agent") != "repute/test (+https://operator.example)" || got.Get("Referer") != "" ||
		got.Get("Cookie") != "" {
		t.Errorf("request headers %v", got)
	}
}

func TestFetchPlainHTTP(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, sample) }))
	defer srv.Close()
	host := srv.Listener.Addr().String()
	for name, c := range map[string]struct {
		guard GuardOptions
		want  Reason
	}{
		"closed":      {GuardOptions{}, ReasonHTTPDisabled},
		"http public": {GuardOptions{AllowHTTP: true}, ReasonBlockedAddress},
		"host":        {GuardOptions{AllowHosts: []string{host}}, ""},
		"prefix":      {GuardOptions{AllowPrefixes: loopback}, ""},
		"other port":  {GuardOptions{AllowHosts: []string{"127.0.0.1:1"}}, ReasonHTTPDisabled},
	} {
		doc, err := client(t, Options{GuardOptions: c.guard}).Fetch(t.Context(), srv.URL)
		if reasonOf(err) != c.want || (err == nil) != (string(doc.Bytes) == sample) {
			t.Errorf("%s: %q, %v", name, doc.Bytes, err)
		}
	}
}

func TestFetchRedirects(t *testing.T) {
	c, base := site(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hops" {
			left, _ := strconv.Atoi(r.URL.Query().Get("n"))
			if left == 0 {
				fmt.Fprint(w, sample)
				return
			}
			http.Redirect(w, r, fmt.Sprintf("/hops?n=%d", left-1), http.StatusFound)
			return
		}
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
	})
	to := func(target string) string { return base + "/?to=" + url.QueryEscape(target) }
	for target, want := range map[string]Reason{
		base + "/hops?n=3":                      "",
		base + "/hops?n=4":                      ReasonRedirects,
		base + "/hops?n=1000000":                ReasonRedirects,
		to("https://169.254.169.254/meta-data"): ReasonBlockedAddress,
		to("https://[::1]/"):                    ReasonBlockedAddress,
		to("https://[::ffff:127.0.0.1]:1/"):     ReasonNetwork, // the allowed prefix, spelt as v6: dialled and refused
		to("https://10.0.0.1/"):                 ReasonBlockedAddress,
		to("https://a:b@example.com/"):          ReasonBlockedHost,
		to("https://localhost/"):                ReasonBlockedHost,
		to("http://127.0.0.1:80/"):              ReasonHTTPDisabled, // allowed host, but a step down from https
		to("file:///etc/passwd"):                ReasonHTTPDisabled,
	} {
		if _, err := c.Fetch(t.Context(), target); reasonOf(err) != want {
			t.Errorf("%s: got %v, want %q", target, err, want)
		}
	}
}

func TestFetchStatus(t *testing.T) {
	c, base := site(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		code, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("Retry-After", r.URL.Query().Get("after"))
		w.WriteHeader(code)
	})
	for _, want := range []Error{
		{Reason: ReasonNotFound, Status: 404, Retry: true},
		{Reason: ReasonNotFound, Status: 410},
		{Reason: ReasonHTTPStatus, Status: 403},
		{Reason: ReasonHTTPStatus, Status: 204},
		{Reason: ReasonHTTPStatus, Status: 304},
		{Reason: ReasonHTTPStatus, Status: 429, Retry: true, RetryAfter: 7 * time.Second},
		{Reason: ReasonHTTPStatus, Status: 503, Retry: true, RetryAfter: maxRetryAfter},
	} {
		_, err := c.Fetch(t.Context(), fmt.Sprintf("%s/%d?after=%.0f", base, want.Status, want.RetryAfter.Seconds()))
		var got *Error
		if !errors.As(err, &got) {
			t.Fatalf("%d: %v", want.Status, err)
		}
		plain := *got
		plain.Err = nil
		if plain != want {
			t.Errorf("got %+v, want %+v", plain, want)
		}
	}
}

func TestFetchEncodings(t *testing.T) {
	c, base := site(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", r.URL.Path[1:])
		switch r.URL.Path {
		case "/gzip":
			_, _ = w.Write(gz(t, []byte(sample)))
		default:
			fmt.Fprint(w, sample)
		}
	})
	for path, want := range map[string]Reason{
		"gzip": "", "identity": "", "x-gzip": ReasonBadGzip, "br": ReasonUnsupportedEncoding,
	} {
		doc, err := c.Fetch(t.Context(), base+"/"+path)
		if reasonOf(err) != want || want == "" && string(doc.Bytes) != sample {
			t.Errorf("%s: %q, %v", path, doc.Bytes, err)
		}
	}
}

// flood writes until the client hangs up and says how much it got rid of.
func flood(w http.ResponseWriter, total int64) int64 {
	chunk := make([]byte, 64<<10)
	var sent int64
	for sent < total {
		n, err := w.Write(chunk)
		sent += int64(n)
		if err != nil {
			break
		}
	}
	return sent
}

func TestFetchHugeBody(t *testing.T) {
	const tenGB = 10 << 30
	sent := make(chan int64, 1)
	c, base := site(t, Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/announced" {
			w.Header().Set("Content-Length", strconv.Itoa(tenGB))
		}
		sent <- flood(w, tenGB)
	})
	for _, path := range []string{"/streamed", "/announced"} {
		if _, err := c.Fetch(t.Context(), base+path); reasonOf(err) != ReasonTooLarge {
			t.Errorf("%s: %v", path, err)
		}
		if n := <-sent; n > 64<<20 {
			t.Errorf("%s: the server got rid of %d bytes", path, n)
		}
	}
}

func TestFetchSizeLimitIsExact(t *testing.T) {
	c, base := site(t, Options{MaxBytes: 100}, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Path[1:])
		fmt.Fprint(w, strings.Repeat("x", n))
	})
	if doc, err := c.Fetch(t.Context(), base+"/100"); err != nil || len(doc.Bytes) != 100 {
		t.Errorf("100: %d bytes, %v", len(doc.Bytes), err)
	}
	if _, err := c.Fetch(t.Context(), base+"/101"); reasonOf(err) != ReasonTooLarge {
		t.Errorf("101: %v", err)
	}
}

func TestFetchGzipBomb(t *testing.T) {
	c, base := site(t, Options{MaxBytes: 1 << 30}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		zw := gzip.NewWriter(w)
		zeros := make([]byte, 1<<20)
		for range 64 {
			if _, err := zw.Write(zeros); err != nil {
				return
			}
		}
		_ = zw.Close()
	})
	if _, err := c.Fetch(t.Context(), base); reasonOf(err) != ReasonRatio {
		t.Errorf("got %v", err)
	}
}

func TestFetchSlowServers(t *testing.T) {
	done := make(chan struct{})
	c, base := site(t, Options{Timeout: 150 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/drip":
			for r.Context().Err() == nil {
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(gz(t, []byte(sample))[:12])
			_ = http.NewResponseController(w).Flush()
		}
		<-done
	})
	defer close(done)
	for _, path := range []string{"/silent", "/drip", "/gzip"} {
		start := time.Now()
		if _, err := c.Fetch(t.Context(), base+path); reasonOf(err) != ReasonTimeout {
			t.Errorf("%s: %v", path, err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s took %s", path, d)
		}
	}
}

func TestFetchCanceled(t *testing.T) {
	var hits atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	c, base := site(t, Options{}, func(_ http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		cancel()
		<-r.Context().Done()
		// Returning would send an empty answer, which net/http prefers to the
		// cancellation when the two race.
		panic(http.ErrAbortHandler)
	})
	_, err := c.Fetch(ctx, base)
	if reasonOf(err) != ReasonCanceled || !errors.Is(err, context.Canceled) || hits.Load() != 1 {
		t.Errorf("got %v after %d requests", err, hits.Load())
	}
}

func TestFetchTLS(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	c := client(t, Options{GuardOptions: GuardOptions{AllowPrefixes: loopback}})
	if _, err := c.Fetch(t.Context(), srv.URL); reasonOf(err) != ReasonTLS {
		t.Errorf("unknown authority: %v", err)
	}
	srv.Close()
	if _, err := c.Fetch(t.Context(), srv.URL); reasonOf(err) != ReasonNetwork {
		t.Errorf("closed port: %v", err)
	}
}

func TestFetchOnChain(t *testing.T) {
	c := client(t, Options{MaxInlineBytes: 64})
	for uri, want := range map[string]Source{"data:,hello": SourceData, sample: SourceInline} {
		doc, err := c.Fetch(t.Context(), uri)
		if err != nil || doc.Source != want || doc.FinalURL != "" {
			t.Errorf("%s: %+v, %v", uri, doc, err)
		}
	}
	for uri, want := range map[string]Reason{
		"": ReasonEmpty, "ar://x": ReasonUnsupportedScheme, "word": ReasonNotURI, "ipfs://0x12": ReasonBadCID,
		"https://": ReasonBadURL, "{" + strings.Repeat(" ", 100) + "}": ReasonTooLarge,
		"ipfs://" + cidV0: ReasonNoGateway,
	} {
		_, err := c.Fetch(t.Context(), uri)
		var e *Error
		if !errors.As(err, &e) || e.Reason != want || e.Retry {
			t.Errorf("%q: got %v, want %s", uri, err, want)
		}
	}
}

func TestNewRefusesGateways(t *testing.T) {
	for _, g := range []string{"ipfs.io", "ftp://x", "https://", ":"} {
		if _, err := New(Options{Gateways: []string{g}}); err == nil {
			t.Errorf("%q accepted", g)
		}
	}
}

// Nothing a stranger wrote may break the row it is stored in.
func TestStringsAreStorable(t *testing.T) {
	c, base := site(t, Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("ETag", "\xff")
		w.Header().Set("Last-Modified", strings.Repeat("x", 300))
		fmt.Fprint(w, sample)
	})
	doc, err := c.Fetch(t.Context(), base+"/?\xff")
	if err != nil || doc.ETag != "" || doc.LastModified != "" || doc.FinalURL != base+"/?\ufffd" {
		t.Errorf("%+v, %v", doc, err)
	}
	doc, err = c.Fetch(t.Context(), "data:a/\xff\x00"+strings.Repeat("é", 300)+",x")
	if err != nil || len(doc.MediaType) > maxShortText || strings.ContainsRune(doc.MediaType, 0) {
		t.Errorf("%q, %v", doc.MediaType, err)
	}
	n := newNode(t)
	dir := n.dir("a\x00\xff", n.raw([]byte(sample))).Cid().String()
	local, _ := gatewayClient(t, Options{}, n.handler())
	doc, err = local.Fetch(t.Context(), "ipfs://"+dir+"/a%00%ff")
	if err != nil || doc.FinalURL != "ipfs://"+dir+"/a%00%FF" {
		t.Errorf("%q, %v", doc.FinalURL, err)
	}
	long := &Error{Reason: ReasonNetwork, Err: errors.New("\xff\x00" + strings.Repeat("é", 2000))}
	if text := long.Error(); len(text) > maxErrorText || !strings.HasPrefix(text, "network: \ufffd é") {
		t.Errorf("%.40q of %d bytes", text, len(text))
	}
}

// The limit of a compressed body must not make a whole out of a part.
func TestReadBodyNeverCutsGzip(t *testing.T) {
	first := gz(t, []byte(`{"name":"first half"`))
	last := gz(t, []byte(`,"active":true}`))
	whole := slices.Concat(first, last)
	for limit, want := range map[int64]Reason{
		int64(len(first) - 1): ReasonTooLarge, // exactly one member is read
		int64(len(first) + 5): ReasonTooLarge, // into the next one
		int64(len(whole) - 1): ReasonTooLarge,
		int64(len(whole)):     "",
	} {
		b, err := readBody(&http.Response{Header: http.Header{"Content-Encoding": {"gzip"}},
			Body: io.NopCloser(bytes.NewReader(whole))}, limit)
		if reasonOf(err) != want || (err == nil) != (want == "") {
			t.Errorf("limit %d of %d: %q, %v", limit, len(whole), b, err)
		}
	}
}

// A header alone is asked of https URLs that the guard allows; a redirect is an answer and is not followed.
func TestHead(t *testing.T) {
	var asked atomic.Int64
	answer := func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Method != http.MethodHead || r.Header.Get("User-Agent") != "repute/test" {
			t.Errorf("%s by %q", r.Method, r.Header.Get("User-Agent"))
		}
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case "/slow":
			<-r.Context().Done()
		case "/broken":
			w.WriteHeader(http.StatusBadGateway)
		}
	}
	c, base := site(t, Options{UserAgent: "repute/test"}, answer)
	for path, want := range map[string]int{"/": 200, "/moved": 302, "/broken": 502} {
		if got, err := c.Head(t.Context(), base+path); got != want || err != nil {
			t.Errorf("%s: %d, %v", path, got, err)
		}
	}
	if asked.Load() != 3 {
		t.Errorf("%d requests: a redirect was followed", asked.Load())
	}
	hasty, other := site(t, Options{UserAgent: "repute/test", Timeout: 200 * time.Millisecond}, answer)
	if _, err := hasty.Head(t.Context(), other+"/slow"); reasonOf(err) != ReasonTimeout {
		t.Errorf("a server that does not answer: %v", err)
	}
	before := asked.Load()
	for _, target := range []string{"http" + strings.TrimPrefix(base, "https"), "data:,x", "", "https://10.0.0.1/",
		"https://localhost/",
		"https://u:p@example.com/"} {
		if status, err := c.Head(t.Context(), target); err == nil || status != 0 {
			t.Errorf("%q was asked: %d", target, status)
		}
	}
	if asked.Load() != before {
		t.Error("a refused URL was asked")
	}
}
