package manifests

import (
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"repute/resolver"
	"repute/store"
	"repute/store/manifestdb"
)

// The pause doubles with each failure up to its limit, and a host's own wish for a longer one counts.
func TestFailures(t *testing.T) {
	t.Parallel()
	l := &Loop{opts: Options{}.withDefaults()}
	last := time.Duration(0)
	for failures := range 30 {
		wait := l.backoff(failures)
		if wait < last/2 || wait > l.opts.RetryMax+l.opts.RetryMax/10 {
			t.Errorf("after %d failures %s, before %s", failures, wait, last)
		}
		last = wait
	}
	if last < l.opts.RetryMax*8/10 {
		t.Errorf("at the end %s", last)
	}
	for name, c := range map[string]struct {
		err    resolver.Error
		silent bool
		rest   time.Duration
		gone   manifestdb.State
	}{
		"busy": {resolver.Error{Reason: resolver.ReasonHTTPStatus, Status: http.StatusTooManyRequests,
			RetryAfter: 30 * time.Hour, Retry: true}, false, 30 * time.Hour, ""},
		"broken": {resolver.Error{Reason: resolver.ReasonHTTPStatus, Status: 500, RetryAfter: time.Hour, Retry: true},
			false, 0, ""},
		"silent":   {resolver.Error{Reason: resolver.ReasonTimeout, Retry: true}, true, 0, ""},
		"no name":  {resolver.Error{Reason: resolver.ReasonDNS, Retry: true}, true, 0, ""},
		"missing":  {resolver.Error{Reason: resolver.ReasonNotFound, Status: 404}, false, 0, manifestdb.StateMissing},
		"redirect": {resolver.Error{Reason: resolver.ReasonTimeout, AfterRedirect: true}, false, 0, ""},
	} {
		o := l.failure(manifestdb.Claim{}, &c.err)
		if o == nil || o.silent != c.silent || o.rest != c.rest || o.Gone != c.gone || o.Wait < c.rest {
			t.Errorf("%s: %+v", name, o)
		}
	}
	for _, err := range []error{errors.New("other"), &resolver.Error{Reason: resolver.ReasonCanceled}} {
		if o := l.failure(manifestdb.Claim{}, err); o != nil {
			t.Errorf("%v says something about the domain: %+v", err, o)
		}
	}
}

// A manifest is checked as often as its host allows, and one that nobody uses less often.
func TestWait(t *testing.T) {
	t.Parallel()
	l := &Loop{opts: Options{}.withDefaults()}
	used, unused := manifestdb.Claim{Used: true}, manifestdb.Claim{}
	for name, c := range map[string]struct {
		got, want time.Duration
	}{
		"used":      {l.wait(used, true, 0), time.Hour},
		"fresh":     {l.wait(used, true, 5*time.Hour), 5 * time.Hour},
		"impatient": {l.wait(used, true, time.Minute), time.Hour},
		"forever":   {l.wait(used, true, 7*24*time.Hour), 24 * time.Hour},
		"unused":    {l.wait(unused, true, 0), 24 * time.Hour},
		"unusable":  {l.wait(used, false, 0), 24 * time.Hour},
	} {
		if c.got < c.want*9/10 || c.got > c.want*11/10 {
			t.Errorf("%s: %s, want about %s", name, c.got, c.want)
		}
	}
}

// A host that does not answer rests for documents too.
func TestSilentHostRests(t *testing.T) {
	t.Parallel()
	const domain = "silent.example.com"
	db := openStore(t)
	if _, err := manifestdb.Import(t.Context(), db, []string{domain}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Pool().Exec(t.Context(), `insert into hosts (host, due_at) values ($1, now())`,
		domain); err != nil {
		t.Fatal(err)
	}
	claims, err := manifestdb.ClaimDue(t.Context(), db, 10)
	if err != nil || len(claims) != 1 {
		t.Fatalf("%v, %v", claims, err)
	}
	o := outcome{silent: true, shortest: time.Minute,
		Result: manifestdb.Result{Reason: "timeout", Wait: time.Nanosecond}}
	if err := o.save(t.Context(), db, claims[0]); err != nil {
		t.Fatal(err)
	}
	if again, err := manifestdb.ClaimDue(t.Context(), db, 10); err != nil || len(again) != 0 {
		t.Errorf("claimed while the host rests: %+v, %v", again, err)
	}
	if rests := resting(t, db); rests != 1 {
		t.Errorf("%d hosts rest", rests)
	}
}

// resting counts the hosts that rest and are not claimed.
func resting(t *testing.T, db *store.DB) (n int) {
	t.Helper()
	err := db.Pool().QueryRow(t.Context(),
		`select count(*) from hosts where rest_until > now() and claimed_until is null and failures = 1`).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A place that a quick host left is given to the next domain at once: the pause between looks is for an empty queue.
func TestPlacesAreRefilled(t *testing.T) {
	t.Parallel()
	var domains []string
	for i := range 7 {
		domains = append(domains, fmt.Sprintf("quick%d.example.com", i))
	}
	client := site(t, "127.0.81.23", http.NotFound, domains...)
	db := openStore(t)
	o := quick()
	o.Sweep, o.Domains, o.Absent = time.Hour, 2, time.Hour
	crawl(t, db, client, o, domains...)
	for _, domain := range domains {
		eventually(t, domain+" was asked",
			func() bool { m, _ := read(t, db, domain); return m.State == manifestdb.StateMissing })
	}
}
