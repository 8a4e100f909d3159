package wellknown

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/temoto/robotstxt"

	"repute/resolver"
)

// maxRobots is the size up to which robots.txt is read (RFC 9309, section 2.5).
const maxRobots = 500 << 10

// How long the rules of a host hold.
const (
	rulesFor   = 24 * time.Hour // also of a host that fails: a day without visits
	maxDelay   = time.Minute    // a longer Crawl-delay is not believed
	maxGroupID = 64
)

// Rules are what a host's robots.txt says to a crawler.
type Rules struct {
	group *robotstxt.Group // nil where Deny decides
	deny  bool
	// Failed reports that the host did not say what its rules are. Then nothing is allowed.
	Failed bool
	// Delay is the pause between two requests that the host asks for, 0 for none.
	Delay time.Duration
	// Until is when the rules should be read again.
	Until time.Time
}

// Allows reports whether a crawler may fetch a path.
func (r Rules) Allows(path string) bool {
	if r.group == nil {
		return !r.deny
	}
	return r.group.Test(path)
}

// Robots reads the robots.txt of a host for a crawler of that name. A host without one allows everything; one that
// fails (5xx, no answer) allows nothing for a day (RFC 9309, section 2.3.1). An error is returned only where the caller
// gave up.
func (f *Fetcher) Robots(ctx context.Context, host, agent string, now time.Time) (Rules, error) {
	base, err := origin(host)
	if err != nil {
		return Rules{}, err
	}
	doc, err := f.client.FetchWithin(ctx, base+"/robots.txt", resolver.Validators{},
		resolver.Limits{MaxBytes: maxRobots, SameOrigin: true})
	var failure *resolver.Error
	switch {
	case err == nil:
		return rulesOf(doc.Bytes, agent, now), nil
	case errors.As(err, &failure) && failure.Reason == resolver.ReasonCanceled:
		return Rules{}, err
	case failure != nil && failure.Status >= 400 && failure.Status < 500 &&
		failure.Status != http.StatusTooManyRequests:
		return Rules{Until: now.Add(rulesFor)}, nil
	}
	return Rules{deny: true, Failed: true, Until: now.Add(rulesFor)}, nil
}

// rulesOf parses robots.txt. Text that is none allows everything, as RFC 9309 wants.
func rulesOf(b []byte, agent string, now time.Time) Rules {
	rules := Rules{Until: now.Add(rulesFor)}
	data, err := robotstxt.FromBytes(b)
	if err != nil {
		return rules
	}
	name, _, _ := strings.Cut(agent, "/")
	rules.group = data.FindGroup(name[:min(len(name), maxGroupID)])
	rules.Delay = min(max(rules.group.CrawlDelay, 0), maxDelay)
	return rules
}
