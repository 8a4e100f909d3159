package manifestbench

import (
	"testing"
	"time"

	"repute/manifest/agentjson"
)

// A small run measures everything, and what it measures works: manifests are verified, and queries find their texts.
func TestRun(t *testing.T) {
	r, err := Run(t.Context(), Options{Manifests: 200, Intents: 2000, Queries: 10, Texts: 20})
	if err != nil {
		t.Fatal(err)
	}
	m := r.Measurements.(Measurements)
	if m.ParsedPerSecond <= 0 || m.VerifyMS <= 0 || m.MatchMS <= 0 || m.MedianMS <= 0 || m.Embedded != 20 ||
		m.FirstMatches < 0.5 || len(r.Targets) != 3 {
		t.Errorf("%+v, %+v", m, r.Targets)
	}
	for _, target := range r.Targets {
		if target.OK != (target.Bound == "min" && target.Value >= target.Limit ||
			target.Bound == "max" && target.Value <= target.Limit) {
			t.Errorf("%+v", target)
		}
	}
}

// A small crawl asks every host once, reads those that answer, and gives up the dead ones.
func TestCrawl(t *testing.T) {
	r, err := Run(t.Context(), Options{Manifests: 10, Intents: 20, Queries: 1, Texts: 5, Hosts: 8,
		Timeout: 15 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	c := r.Measurements.(Measurements).Crawl
	if c == nil || c.Hosts != 8 || c.Dead != 4 || c.Read != 4 || c.Ideal <= 0 || c.Seconds < c.Ideal ||
		len(r.Targets) != 4 {
		t.Errorf("%+v, %+v", c, r.Targets)
	}
}

// The manifest that is measured is one that publishers may write.
func TestTypical(t *testing.T) {
	doc, _, err := signed()
	if err != nil {
		t.Fatal(err)
	}
	if _, problems := agentjson.Parse(doc, agentjson.Options{Host: host,
		Profile: agentjson.Strict}); len(problems) != 0 {
		t.Errorf("%+v", problems)
	}
}
