package manifestbench

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"repute/indexer/manifests"
	"repute/internal/bench/harness"
	"repute/resolver"
	"repute/resolver/wellknown"
	"repute/store"
	"repute/store/manifestdb"
)

// What the crawl is measured with.
const (
	crawlPlaces  = 32                    // domains at the same time, as in the product
	latency      = 50 * time.Millisecond // of each answer: with it 10,000 hosts take less than two minutes
	requestsEach = 2                     // of a host that answers: robots.txt and the manifest
	crawlLimit   = 30 * time.Minute      // of the whole crawl
	leastShare   = 0.9                   // of the bound
)

// Crawl is one crawl of many hosts, of which half are dead: of those every other one accepts connections and never
// answers, and the rest refuse them.
type Crawl struct {
	Hosts   int     `json:"hosts"`
	Dead    int     `json:"dead"`
	Read    int64   `json:"read"` // hosts whose document was read
	Seconds float64 `json:"seconds"`
	// Ideal is what politeness allows: what the hosts and timeouts take, by the domains that are asked at once.
	Ideal     float64 `json:"ideal_seconds"`
	PerSecond float64 `json:"hosts_per_second"`
}

// share is how near the crawl came to its bound: 1 would be as fast as politeness allows.
func (c Crawl) share() float64 { return c.Ideal / max(c.Seconds, 1e-9) }

// crawl asks all hosts once, each request within the timeout, with the product's own loop, on a database of the server.
// The bound leaves out hosts that refuse connections, which take no time. It is an error if a host that answers was not
// read: a crawl that gives up early would be fast.
func crawl(ctx context.Context, server *harness.Server, hosts int, timeout time.Duration) (c Crawl, err error) {
	ctx, cancel := context.WithTimeout(ctx, crawlLimit)
	defer cancel()
	d, err := server.Fresh(ctx)
	if err != nil {
		return c, err
	}
	db, err := store.Open(ctx, d.URL, store.Options{})
	if err != nil {
		return c, err
	}
	defer db.Close()
	w, err := startWeb(ctx)
	if err != nil {
		return c, err
	}
	defer w.close()
	c.Hosts = hosts
	var names []string
	slow := 0
	for i := range hosts {
		kind := []string{"live", "mute", "live", "closed"}[i%4]
		if kind != "live" {
			c.Dead++
		}
		if kind == "mute" {
			slow++
		}
		names = append(names, w.name(kind, i))
	}
	// A host that answers takes its requests one after the other. One that accepts and is silent takes one timeout, after
	// which it is not asked again; one that refuses takes nothing.
	work := time.Duration(hosts-c.Dead)*requestsEach*latency + time.Duration(slow)*timeout
	c.Ideal = (work / crawlPlaces).Seconds()
	if _, err := manifestdb.Import(ctx, db, names); err != nil {
		return c, err
	}
	client, err := resolver.New(resolver.Options{Timeout: timeout, GuardOptions: resolver.GuardOptions{
		AllowPrefixes: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, RootCAs: w.roots, Ports: []uint16{w.port},
		Resolver: w.names()}})
	if err != nil {
		return c, err
	}
	defer client.Close()
	began := time.Now()
	if err := asked(ctx, db, client); err != nil {
		return c, err
	}
	c.Seconds = time.Since(began).Seconds()
	c.PerSecond = float64(hosts) / c.Seconds
	var why string
	err = db.Pool().QueryRow(ctx, `select count(*) filter (where body is not null),
		coalesce(max(domain || ': ' || reason || ' ' || detail) filter (where body is null and domain like '%-live.%'), '')
		from manifests`).Scan(&c.Read, &why)
	if err == nil && c.Read != int64(hosts-c.Dead) {
		err = fmt.Errorf("%d of %d hosts that answer were read: %s", c.Read, hosts-c.Dead, why)
	}
	return c, err
}

// asked runs the loop until every domain was asked, and ends it. It looks every 50 ms, which is a part of the time.
func asked(ctx context.Context, db *store.DB, client *resolver.Client) error {
	// The loop is ended when nothing is pending; its error is that of the crawl.
	running, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		done <- manifests.New(db, wellknown.New(client), manifests.Options{Domains: crawlPlaces}).Run(running)
	}()
	var err error
	for open := true; open && err == nil; {
		if err = ctx.Err(); err == nil {
			time.Sleep(50 * time.Millisecond)
			err = db.Pool().QueryRow(ctx, `select exists (select from manifests where state = 'pending')`).Scan(&open)
		}
	}
	stop()
	return errors.Join(err, <-done)
}
