package apibench

import (
	"context"
	"crypto/md5" //nolint:gosec // names of the index are made of it
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"repute/internal/bench/harness"
	"repute/internal/freeport"
	"repute/store"
)

// What the API must reach.
const (
	leastHot       = 0.6                    // of what a bare handler answers
	mostCold       = 10 * time.Millisecond  // of 99 in 100 answers at Options.Rate
	mostHeavy      = 50 * time.Millisecond  // the agent with most ratings, at latest
	mostHeavyPast  = time.Second            // the same at a block of the past
	mostList       = 100 * time.Millisecond // of 99 in 100 lists with a filter and a total
	mostBatch      = 100 * time.Millisecond
	mostGraph      = 80 * time.Millisecond
	mostStreamsMB  = 100 // of Options.Streams that wait, 50 kB for each of 2,000
	mostChange     = 200 * time.Millisecond
	leastWebhooks  = 1000 // messages per second to one receiver
	mostSlowerPart = 0.1  // of indexing beside requests
)

// Sizes of questions.
const (
	batchSize  = 500
	hotConns   = 32
	onceHot    = 1100 * time.Millisecond // answers are not older than a second
	coldAgents = 1_000_003               // a prime, so that multiples of it reach every agent before one comes again
)

// Options of the benchmark.
type Options struct {
	Program harness.Program // the product
	Bare    harness.Program // serves a constant when started as api-bare
	Agents  int             // of the index that is filled
	Ratings int             // of it
	Heavy   int             // of these, ratings of one agent, whose token is 0
	Span    time.Duration   // of each measurement of rates
	Rate    int             // requests per second where a rate is given
	Streams int             // that wait for changes
	// Messages is how many are sent to the receiver of a webhook.
	Messages int
	// Progress gets lines for a person; nil for none.
	Progress io.Writer
}

// Measurements are what a report has beside its targets. Times are milliseconds. Lists have one figure for each of the
// three turns in which two sides are compared.
type Measurements struct {
	FillSeconds float64   `json:"fill_seconds"`
	BodyBytes   int64     `json:"body_bytes"` // of the hot reputation, and of the bare handler
	Bare        []float64 `json:"bare_per_second"`
	Hot         []float64 `json:"hot_per_second"`
	Cold        Times     `json:"cold"`
	Heavy       Times     `json:"heavy_latest"`
	HeavyPast   Times     `json:"heavy_past"`
	Lists       Times     `json:"lists"`
	Batches     Times     `json:"batches"`
	Graph       Times     `json:"graphql_pages"`
	Subgraph    Subgraph  `json:"subgraph"`
	IdleMB      float64   `json:"idle_mb"`
	StreamsMB   float64   `json:"streams_mb"` // beyond idle
	Changes     Times     `json:"changes"`
	Webhooks    float64   `json:"webhooks_per_second"`
	IndexAlone  []float64 `json:"index_alone_per_second"`
	IndexBeside []float64 `json:"index_beside_per_second"`
	Beside      Times     `json:"beside_index"` // of the requests beside indexing, in the last of three turns
}

// Times summarizes answers, in milliseconds. A request that was refused counts as the longest time that the benchmark
// waits.
type Times struct {
	Count   int     `json:"count"`
	Median  float64 `json:"median_ms"`
	P99     float64 `json:"p99_ms"`
	Longest float64 `json:"longest_ms"`
	Refused int     `json:"refused,omitempty"`
	Refusal string  `json:"refusal,omitempty"` // one of them
}

// timesOf summarizes answers.
func timesOf(a answers) Times {
	at := func(share float64) float64 { return harness.Quantile(a.times, share) }
	return Times{len(a.times), at(0.5), at(0.99), at(1), a.refused, a.refusal}
}

// bench is a running benchmark. The product has one role, api: blocks are written by a writer of this process.
type bench struct {
	harness.Progress
	o       Options
	d       *harness.Database
	db      *store.DB
	address string // of the product
	config  string // more lines of its configuration
	product *harness.Process
	sink    *sink
	m       Measurements
}

// Run fills a database, starts the product on it and measures.
func Run(ctx context.Context, o Options) (harness.Report, error) {
	say := harness.Progress{To: o.Progress}
	r := harness.Report{Name: "api", Config: map[string]any{"agents": o.Agents, "ratings": o.Ratings, "heavy": o.Heavy,
		"seconds": o.Span.Seconds(), "rate": o.Rate, "streams": o.Streams, "messages": o.Messages}}
	return harness.OnServer(ctx, say, r, false, func(server *harness.Server) (any, []harness.Target, error) {
		b := &bench{Progress: say, o: o}
		if err := b.run(ctx, server, b.measure); err != nil {
			return nil, nil, err
		}
		return b.m, b.targets(), nil
	})
}

// run prepares everything, measures, and ends what it started.
func (b *bench) run(ctx context.Context, server *harness.Server, measure func(context.Context) error) (err error) {
	if b.d, err = server.Fresh(ctx); err != nil {
		return err
	}
	if b.db, err = store.Open(ctx, b.d.URL, store.Options{}); err != nil {
		return err
	}
	defer b.db.Close()
	b.Say("%d agents with %d ratings", b.o.Agents, b.o.Ratings)
	start := time.Now()
	// The product starts on the full database: what it reads at its start is what it would find after years.
	if err := fill(ctx, b.d, b.db, size{b.o.Agents, b.o.Ratings, b.o.Heavy}); err != nil {
		return err
	}
	b.m.FillSeconds = time.Since(start).Seconds()
	if b.address, err = freeport.Of("127.0.0.1:0"); err != nil {
		return err
	}
	if b.sink, err = newSink(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.sink.close()) }()
	// Callers have no rate limit, may name the address of another one, and may have webhooks on this machine.
	if b.product, err = b.o.Program.Serve(fmt.Sprintf(
		"database: %q\nroles: [api]\nlisten: %q\nrate: -1\ntrusted_proxies: [127.0.0.0/8]\nallow_hosts: [%q]\n%s",
		b.d.URL, b.address, b.sink.address, b.config)); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.product.Stop()) }()
	ready := func(ctx context.Context) (bool, error) {
		c, err := dial(ctx, b.address)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		defer c.Close()
		_, err = c.get("/healthz")
		return err == nil, nil
	}
	if err := b.product.Await(ctx, 50*time.Millisecond, ready); err != nil {
		return err
	}
	return measure(ctx)
}

// measure takes one figure after the other. Streams, webhooks and indexing are last, because they write: the others
// read the index as fill left it.
func (b *bench) measure(ctx context.Context) error {
	for _, step := range []struct {
		name string
		do   func(context.Context) error
	}{{"hot reputations", b.hot}, {"cold reputations", b.cold}, {"the agent with most ratings", b.heavy},
		{"lists", b.lists},
		{"batches", b.batches}, {"GraphQL", b.graph}, {"subgraph", b.subgraph}, {"streams", b.streams},
		{"webhooks", b.webhooks}, {"indexing", b.indexing}} {
		b.Say("%s", step.name)
		if err := step.do(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
	}
	return nil
}

// reputation returns the path of an agent's reputation.
func reputation(agent int) string { return fmt.Sprintf("/agents/%d:%d/reputation", chainID, agent) }

// hot compares the product with the bare handler: the same client asks one and the other in turn.
func (b *bench) hot(ctx context.Context) (err error) {
	c, err := dial(ctx, b.address)
	if err != nil {
		return err
	}
	b.m.BodyBytes, err = c.get(reputation(1))
	if err = errors.Join(err, c.Close()); err != nil {
		return err
	}
	bare, url, err := b.o.Bare.StartServing("api-bare", "--bytes", fmt.Sprint(b.m.BodyBytes))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, bare.Stop()) }()
	// The sides are asked in turn, so that both have the same neighbors on the machine.
	for range 3 {
		for _, side := range []struct {
			address string
			to      *[]float64
		}{{strings.TrimPrefix(url, "http://"), &b.m.Bare}, {b.address, &b.m.Hot}} {
			n, err := throughput(ctx, side.address, reputation(1), hotConns, b.o.Span/3)
			if err != nil {
				return err
			}
			*side.to = append(*side.to, n)
		}
	}
	return nil
}

// coldPath returns a path that no earlier request of the same series had.
func (b *bench) coldPath(n int) string { return reputation(1 + n*coldAgents%max(b.o.Agents-1, 1)) }

// cold measures reputations of different agents. A request is late from when it is due: an API that answers slower than
// requests come is not measured as if its callers waited.
func (b *bench) cold(ctx context.Context) error {
	all, err := paced(ctx, b.address, b.coldPath, b.o.Rate, b.o.Span)
	b.m.Cold = timesOf(all)
	return err
}

// heavy measures the agent with most ratings, now and at blocks of the past. The pause before each question is longer
// than an answer is kept, so that every answer is computed.
func (b *bench) heavy(ctx context.Context) error {
	now, err := each(ctx, b.address, 10, onceHot, func(c *conn, _ int) error {
		_, err := c.get(reputation(0))
		return err
	})
	if err != nil {
		return err
	}
	// Five blocks that divide the ratings into six parts: the later the block, the more of them count.
	first, last := b.o.Agents/perBlock+1, (b.o.Agents+b.o.Heavy)/perBlock // blocks of its ratings
	past, err := each(ctx, b.address, 5, 0, func(c *conn, n int) error {
		_, err := c.get(reputation(0) + fmt.Sprintf("?at=%d", first+(last-first)*(n+1)/6))
		return err
	})
	b.m.Heavy, b.m.HeavyPast = timesOf(now), timesOf(past)
	return err
}

// lists measures lists with filters, orders and totals. Five kinds come in turn, each with other values: the total of a
// filter is what costs most.
func (b *bench) lists(ctx context.Context) error {
	all, err := each(ctx, b.address, 200, 0, func(c *conn, n int) error {
		filter := []string{
			fmt.Sprintf("minScore=%d&tier=%d&sort=score", n%150-75, n%5),
			fmt.Sprintf("host=h%d.example&minFeedback=1", n%1000),
			fmt.Sprintf("minFeedback=2&sort=feedback&limit=%d", 20+n%50),
			fmt.Sprintf("q=%s&minScore=%d", wordOf(n), n%80-90),
			fmt.Sprintf("updatedSince=%d&chainId=%d&sort=updated", 1+n*10, chainID)}[n%5]
		_, err := c.get("/agents?" + filter)
		return err
	})
	b.m.Lists = timesOf(all)
	return err
}

// batches measures batches of agents of which no two are alike.
func (b *bench) batches(ctx context.Context) error {
	all, err := each(ctx, b.address, 20, 0, func(c *conn, n int) error {
		var body strings.Builder
		body.WriteString(`{"agents":[`)
		for i := range batchSize {
			if i > 0 {
				body.WriteString(",")
			}
			fmt.Fprintf(&body, `"%d:%d"`, chainID, 1+(n*batchSize+i)*coldAgents%max(b.o.Agents-1, 1))
		}
		body.WriteString("]}")
		_, err := c.send("POST", "/reputation:batch", body.String())
		return err
	})
	b.m.Batches = timesOf(all)
	return err
}

// graph measures pages of a hundred agents with reputation and ten ratings each.
func (b *bench) graph(ctx context.Context) error {
	all, err := each(ctx, b.address, 20, 0, func(c *conn, n int) error {
		body, err := json.Marshal(map[string]string{"query": fmt.Sprintf(pageQuery, 1+n%2,
			[]string{"asc", "desc"}[n/2%2])})
		if err != nil {
			return err
		}
		_, err = c.send("POST", "/graphql", string(body))
		return err
	})
	b.m.Graph = timesOf(all)
	return err
}

// pageQuery is a query of GraphQL with a least number of ratings and an order.
const pageQuery = `{ agents(filter: {minFeedback: %d}, sort: updated, order: %s, first: 100) { nodes { id
	reputation { score low high status tier summary { count decimal } }
	feedback(first: 10) { nodes { client value tag1 } } } } }`

// streams measures what waiting streams hold of memory, and how soon one of them shows a change. The memory is that of
// the process less what it held before, after it has rested both times. Of each block the first change counts.
func (b *bench) streams(ctx context.Context) (err error) {
	time.Sleep(settle)
	b.m.IdleMB = b.product.ResidentMB()
	s, err := openStreams(ctx, b.address, b.o.Streams)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	time.Sleep(settle)
	b.m.StreamsMB = b.product.ResidentMB() - b.m.IdleMB
	w, err := newWriter(ctx, b.db, b.o.Agents)
	if err != nil {
		return err
	}
	var all answers
	for range 20 {
		if err := w.write(ctx, 1); err != nil {
			return err
		}
		committed := time.Now()
		seen, err := s.await(ctx)
		if err != nil {
			return err
		}
		all.times = append(all.times, harness.Millis(max(seen.Sub(committed), 0)))
		time.Sleep(settle / 4) // the other changes of the block come meanwhile
		s.drop()
	}
	b.m.Changes = timesOf(all)
	return nil
}

// indexing compares indexing alone with indexing beside requests, in turn. Writing goes straight to the database, as
// the product's indexer does: what is lost is what Postgres and the processors give to the API.
func (b *bench) indexing(ctx context.Context) error {
	w, err := newWriter(ctx, b.db, b.o.Agents)
	if err != nil {
		return err
	}
	w.index = 1 << 20 // clients that gave no rating before
	for range 3 {
		alone, err := w.pace(ctx, b.o.Span/3)
		if err != nil {
			return err
		}
		// The requests have no end of their own: they last as long as the writing.
		requests, stop := context.WithCancel(ctx)
		asked := make(chan error, 1)
		go func() {
			all, err := paced(requests, b.address, b.coldPath, b.o.Rate, time.Hour)
			b.m.Beside = timesOf(all)
			asked <- err
		}()
		beside, err := w.pace(ctx, b.o.Span/3)
		stop()
		if err := errors.Join(err, <-asked); err != nil {
			return err
		}
		b.m.IndexAlone, b.m.IndexBeside = append(b.m.IndexAlone, alone), append(b.m.IndexBeside, beside)
	}
	return nil
}

// targets are the figures with their limits.
func (b *bench) targets() []harness.Target {
	m, ms := b.m, harness.Millis
	return append([]harness.Target{
		harness.AtLeast("hot reputations / answers of a bare handler", harness.Median(m.Hot)/harness.Median(m.Bare),
			leastHot, ""),
		harness.AtMost(fmt.Sprintf("cold reputation, p99 at %d requests a second", b.o.Rate), m.Cold.P99, ms(mostCold),
			"ms"),
		harness.AtMost(fmt.Sprintf("agent with %d ratings, median at latest", b.o.Heavy), m.Heavy.Median, ms(mostHeavy),
			"ms"),
		harness.AtMost("the same at a block of the past", m.HeavyPast.Median, ms(mostHeavyPast), "ms"),
		harness.AtMost("list with a filter and a total, p99", m.Lists.P99, ms(mostList), "ms"),
		harness.AtMost(fmt.Sprintf("batch of %d, median", batchSize), m.Batches.Median, ms(mostBatch), "ms"),
		harness.AtMost("GraphQL page of 100 agents with reputation and 10 ratings, median", m.Graph.Median,
			ms(mostGraph), "ms"),
		harness.AtMost(fmt.Sprintf("memory of %d waiting streams", b.o.Streams), m.StreamsMB, mostStreamsMB, "MB"),
		harness.AtMost("change in a stream after its commit, p99", m.Changes.P99, ms(mostChange), "ms"),
		harness.AtLeast("webhook messages per second to one receiver", m.Webhooks, leastWebhooks, ""),
		harness.AtMost(fmt.Sprintf("share of indexing lost beside %d requests a second", b.o.Rate),
			1-harness.Median(m.IndexBeside)/harness.Median(m.IndexAlone), mostSlowerPart, ""),
	}, m.Subgraph.targets()...)
}

// wordOf returns a word of the name of some agents, as fill makes it: substr(md5(n), 1, 9). Numbers below 500 are the
// words of many agents, those below 5,000 of some, and others of none.
func wordOf(n int) string {
	sum := md5.Sum(fmt.Append(nil, n)) //nolint:gosec // no secret
	return hex.EncodeToString(sum[:])[:9]
}
