package quote_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"repute/orchestrator/outbound"
	"repute/orchestrator/quote"
)

// planned returns a plan of one request.
func planned(method, url string, times int) quote.Planned {
	return quote.Planned{HTTPRequest: outbound.HTTPRequest{Method: method, URL: url}, Times: times}
}

// TestNothingIsPaid: without a payer each planned payment is refused, with a reason that the run is denied for, and
// what is shown of a URL has no password, query or fragment.
func TestNothingIsPaid(t *testing.T) {
	t.Parallel()
	rules := &quote.Rules{Most: 10}
	for _, c := range []struct {
		plan      quote.Planned
		shown     string
		why       string
		times     int
		plainVerb string
	}{
		{planned("", "https://user:secret@shop.example/a?key=secret#x", 0), "https://shop.example/a",
			"the policy lets no agent pay", 1, http.MethodGet},
		{planned(http.MethodPost, "http://shop.example", 3), "http://shop.example", "the policy lets no agent pay", 3,
			http.MethodPost},
		{planned("", "shop.example/a", 1), "", "its URL is no address", 1, http.MethodGet},
		{planned("", "ftp://shop.example/a", 1), "", "its URL is no address", 1, http.MethodGet},
		{planned("", "https:///a", 1), "", "its URL is no address", 1, http.MethodGet},
		{planned("", "https://shop.example/%zz", 1), "", "its URL is no address", 1, http.MethodGet},
		{planned("", "", 1), "", "its URL is no address", 1, http.MethodGet},
	} {
		out, against := rules.All(t.Context(), []quote.Planned{c.plan})
		if len(out) != 1 || len(against) != 1 {
			t.Fatalf("%+v: %+v, %+v", c.plan, out, against)
		}
		q, r := out[0], against[0]
		if q.Verdict != quote.Refuses || q.URL != c.shown || q.Times != c.times || q.Method != c.plainVerb ||
			!strings.Contains(q.Reason, c.why) || q.Payment != nil {
			t.Errorf("%+v: %+v", c.plan, q)
		}
		if r.ID != "dry_run.payment" || !strings.HasPrefix(r.Text, "payment 1 to "+c.shown) ||
			!strings.HasSuffix(r.Text, q.Reason) || strings.Contains(r.Text+q.URL+q.Reason, "secret") {
			t.Errorf("%+v: %+v", c.plan, r)
		}
	}
}

// TestTooMany: a plan of more payments than calls are allowed is denied as a whole, and no server is asked.
func TestTooMany(t *testing.T) {
	t.Parallel()
	plan := slices.Repeat([]quote.Planned{planned("", "https://shop.example/a", 1)}, 3)
	out, against := (&quote.Rules{Most: 2}).All(t.Context(), plan)
	if out != nil || len(against) != 1 || against[0].ID != "limit.maxToolCalls" || against[0].Have != "3" ||
		against[0].Need != "2" {
		t.Errorf("%+v, %+v", out, against)
	}
	if out, against := (&quote.Rules{}).All(t.Context(), nil); len(out) != 0 || len(against) != 0 {
		t.Errorf("no plan: %+v, %+v", out, against)
	}
}
