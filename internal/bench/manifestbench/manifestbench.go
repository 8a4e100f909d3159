package manifestbench

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"runtime"
	"time"

	"repute"
	"repute/intent"
	"repute/intent/sentence"
	"repute/internal/bench/harness"
	"repute/manifest/agentjson"
	"repute/manifest/agentjson/identity"
)

// Targets on one core.
const (
	leastParsed = 20_000                // manifests a second
	mostVerify  = time.Millisecond      // of a manifest of tier 3+
	mostMatch   = 60 * time.Millisecond // of a query, with its embedding
)

// host serves the manifests that are verified. Nothing is asked of it: its DID document is given with the manifest.
const host = "api.example.com"

// Options of the benchmark.
type Options struct {
	Manifests int // that are parsed, judged and verified
	Intents   int // that are searched
	Queries   int
	Texts     int           // that are embedded to make the intents of, 300 at most
	Hosts     int           // that are crawled, half of them dead; 0: none are, and no database is needed
	Timeout   time.Duration // of a request of the crawl; the product waits longer for a host
	Progress  io.Writer     // lines for a person; nil for none
}

// Measurements are what a report has beside its targets. Reading and matching are measured in time of the processor,
// which other processes of the machine influence less than the clock; verifying is the median by the clock.
type Measurements struct {
	ParsedPerSecond float64 `json:"parsed_per_second"`
	VerifyMS        float64 `json:"verify_ms"`
	Embedded        int     `json:"embedded_texts"` // whose vectors, with seeded noise, are those of all intents
	MatchMS         float64 `json:"match_ms"`
	MedianMS        float64 `json:"match_median_ms"` // by the clock
	FirstMatches    float64 `json:"first_matches"`   // share of the queries whose first match is their own text's
	Crawl           *Crawl  `json:"crawl,omitempty"` // nil where no hosts were crawled
}

// Run measures on one core, and the crawl on all of them.
func Run(ctx context.Context, o Options) (harness.Report, error) {
	r, m, err := onOneCore(ctx, o)
	if err != nil || o.Hosts == 0 {
		return r, err
	}
	say := harness.Progress{To: o.Progress}
	say.Say("%d hosts", o.Hosts)
	return harness.OnServer(ctx, say, r, false, func(server *harness.Server) (any, []harness.Target, error) {
		c, err := crawl(ctx, server, o.Hosts, o.Timeout)
		m.Crawl = &c
		return m, append(r.Targets,
			harness.AtLeast(fmt.Sprintf("crawl of %d hosts, half of them dead: ideal time / time", o.Hosts),
				c.share(), leastShare, "")), err
	})
}

// onOneCore measures what needs no network. The vectors of the intents are those of a few hundred texts with seeded
// noise: embedding each would take minutes and measure the same search.
func onOneCore(ctx context.Context, o Options) (harness.Report, Measurements, error) {
	// One processor, as the targets are said: the search would use all of them.
	before := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(before)
	say := harness.Progress{To: o.Progress}
	var m Measurements
	say.Say("%d manifests", o.Manifests)
	if err := m.manifests(o.Manifests); err != nil {
		return harness.Report{}, m, err
	}
	say.Say("%d queries over %d intents", o.Queries, o.Intents)
	if err := m.search(ctx, o); err != nil {
		return harness.Report{}, m, err
	}
	return harness.Report{Name: "manifests", Machine: harness.Host(), Measurements: m,
		Config: map[string]any{"manifests": o.Manifests, "intents": o.Intents, "queries": o.Queries, "cores": 1,
			"vectors": "of the embedded texts, with seeded noise", "hosts": o.Hosts, "domains_at_once": crawlPlaces,
			"latency_ms": latency.Milliseconds(), "timeout_ms": o.Timeout.Milliseconds()},
		Targets: []harness.Target{
			harness.AtLeast("manifests parsed and judged", m.ParsedPerSecond, leastParsed, "1/s"),
			harness.AtMost("verify a manifest of tier 3+", m.VerifyMS, harness.Millis(mostVerify), "ms"),
			harness.AtMost(fmt.Sprintf("match a query over %d intents", o.Intents), m.MatchMS, harness.Millis(mostMatch),
				"ms"),
		}}, m, nil
}

// signed is a manifest of tier 3+ with the DID document of its origin. The key follows from a constant, so that every
// run reads the same bytes.
func signed() (doc, did []byte, err error) {
	key := ed25519.NewKeyFromSeed([]byte("the seed of the benchmark's key."))
	public := key.Public().(ed25519.PublicKey)
	if did, err = identity.NewDIDDocument(host, public); err != nil {
		return nil, nil, err
	}
	doc, err = agentjson.SignCommitments(fmt.Appendf(nil, typical, identity.WebDID(host),
		identity.EncodeKey(public)), key)
	return doc, did, err
}

// manifests measures reading and verification, the latter of at most 10,000: a median needs no more. A manifest with
// problems is an error, since it may be read faster.
func (m *Measurements) manifests(n int) error {
	doc, did, err := signed()
	if err != nil {
		return err
	}
	began := harness.ProcessorSeconds()
	for range n {
		if parsed, problems := agentjson.Parse(doc, agentjson.Options{Host: host}); len(parsed.Intents) != 3 ||
			repute.HasErrors(problems) {
			return fmt.Errorf("the manifest has problems: %+v", problems)
		}
	}
	// A system without processor times gives 0, which would divide by nothing.
	m.ParsedPerSecond = float64(n) / max(harness.ProcessorSeconds()-began, 1e-9)
	evidence := agentjson.Evidence{Host: host, DIDDocument: did, Now: time.Now()}
	var times []float64
	for range min(n, 10_000) {
		began := time.Now()
		parsed, problems := agentjson.Parse(doc, agentjson.Options{Host: host})
		v := agentjson.Verify(parsed, problems, evidence)
		times = append(times, harness.Millis(time.Since(began)))
		if v.Verified != agentjson.TierSigned {
			return fmt.Errorf("the manifest is not verified: %+v", v)
		}
	}
	m.VerifyMS = harness.Median(times)
	return nil
}

// search measures queries whose texts are new, so that each is embedded. Each asks in other words for one of the texts,
// and FirstMatches tells how often that one is found first: a search that finds nothing would be fast.
func (m *Measurements) search(ctx context.Context, o Options) error {
	encoder, err := sentence.New()
	if err != nil {
		return err
	}
	index, err := intent.New(encoder)
	if err != nil {
		return err
	}
	texts := offers()
	texts = texts[:min(max(o.Texts, 1), len(texts))]
	m.Embedded = len(texts)
	if err := fill(ctx, index, encoder, texts, o.Intents); err != nil {
		return err
	}
	runtime.GC() // what filling left is not collected while queries are measured
	var times []float64
	first, spent := 0, harness.ProcessorSeconds()
	for i := range o.Queries {
		asked := texts[i*7%len(texts)]
		began := time.Now()
		r, err := index.Search(ctx, intent.Query{Text: fmt.Sprintf("please %s, case %d", asked.Description, i)})
		if err != nil {
			return err
		}
		times = append(times, harness.Millis(time.Since(began)))
		if len(r.Matches) > 0 && r.Matches[0].Name == asked.Name {
			first++
		}
	}
	m.MatchMS = (harness.ProcessorSeconds() - spent) * 1e3 / float64(max(o.Queries, 1))
	m.MedianMS = harness.Median(times)
	m.FirstMatches = float64(first) / float64(max(o.Queries, 1))
	return nil
}

// noise is the length of what is added to a vector of length 1: copies stay nearer to their own text than to most
// others, as different wordings of one offer do.
const noise = 0.3

// fill puts so many intents into an index: the texts themselves, and then copies whose vectors have noise.
func fill(ctx context.Context, index *intent.Index, e *sentence.Encoder, texts []intent.Item, n int) error {
	vectors, err := intent.Vectors(ctx, e, texts...)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(harness.Seed, 1))
	// The length of a vector of so many normal values is the root of their number: each gets its part of the noise.
	each := float32(noise / math.Sqrt(float64(e.Dim())))
	for i := range n {
		item, v := texts[i%len(texts)], vectors[i%len(texts)][0]
		item.ID = fmt.Sprintf("%06d", i)
		if i >= len(texts) {
			noisy := make([]float32, len(v.Values))
			for j, value := range v.Values {
				noisy[j] = float32(value)*v.Scale + each*float32(rng.NormFloat64())
			}
			if v, err = intent.NewVector(e.ID(), noisy); err != nil {
				return fmt.Errorf("a vector with noise: %w", err)
			}
		}
		if err := index.Put(item, []intent.Vector{v}); err != nil {
			return err
		}
	}
	return nil
}
