package apibench

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"time"

	"repute/internal/bench/harness"
)

// What the pages of the dashboard must reach.
const (
	mostSmall      = 200 * time.Millisecond // of 99 in 100 views of any page of an index like the demo's
	mostFull       = 500 * time.Millisecond // the same of a full index
	mostStatements = 12                     // of one view: each waits for the database once, however fast that is
	mostPlainKB    = 60.0                   // of a page with its scripts and styles, compressed
	mostGraphKB    = 160.0                  // the same of a page with a graph
)

// pageToken is the token of the benchmark, which pages for operators need. It is no secret: the product of the
// benchmark listens on this machine and has nothing but generated rows.
const pageToken = "bench-token-of-every-role-0123456789"

// PagesOptions of the benchmark of pages.
type PagesOptions struct {
	Program                harness.Program // the product
	Agents, Ratings, Heavy int             // as in Options
	Views                  int             // of each page
	// Progress gets lines for a person; nil for none.
	Progress io.Writer
}

// PagesMeasurements are what the report of the pages has beside its targets. Both lists have every page, in the order
// of views.
type PagesMeasurements struct {
	Small []Page `json:"small"` // of an index like the demo's
	Full  []Page `json:"full"`
}

// Page is what was measured of one page.
type Page struct {
	Page string `json:"page"`
	Times
	// Statements are the most that one view had; a batch counts as one.
	Statements int `json:"statements"`
	// KB is the size of the largest view, and of the scripts and styles that it refers to, all as sent.
	KB float64 `json:"kilobytes"`
}

// RunPages fills two databases, starts the product on each, and looks at every page.
func RunPages(ctx context.Context, o PagesOptions) (harness.Report, error) {
	say := harness.Progress{To: o.Progress}
	r := harness.Report{Name: "web", Config: map[string]any{"agents": o.Agents, "ratings": o.Ratings, "heavy": o.Heavy,
		"views": o.Views, "small_agents": smallSize().agents}}
	return harness.OnServer(ctx, say, r, false, func(server *harness.Server) (any, []harness.Target, error) {
		var m PagesMeasurements
		for _, one := range []struct {
			size size
			to   *[]Page
		}{{smallSize(), &m.Small}, {size{o.Agents, o.Ratings, o.Heavy}, &m.Full}} {
			b := &bench{Progress: say, o: Options{Program: o.Program, Agents: one.size.agents,
				Ratings: one.size.ratings,
				Heavy:   one.size.heavy}, config: "orchestrator: {tokens: {bench: " + pageToken + "}}\n"}
			err := b.run(ctx, server, func(ctx context.Context) (err error) {
				*one.to, err = b.pages(ctx, o.Views)
				return err
			})
			if err != nil {
				return nil, nil, err
			}
		}
		return m, m.targets(), nil
	})
}

// smallSize is about that of the demo's index.
func smallSize() size { return size{agents: 300, ratings: 2000, heavy: 600} }

// view is a page of the dashboard: its name in the report, which is a pattern, and the path of its nth view.
type view struct {
	name string
	path func(n int) string
}

// agentAt returns the nth agent that is looked at, never the one with the heavy part of the ratings.
func (b *bench) agentAt(n int) string {
	return fmt.Sprintf("%d:%d", chainID, 1+n*coldAgents%max(b.o.Agents-1, 1))
}

// clientAt returns the nth reviewer that is looked at: one that gave a single rating, with the address that fill makes
// of its number.
func (b *bench) clientAt(n int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(b.o.Heavy + n*coldAgents%max(b.o.Ratings-b.o.Heavy, 1))))
	return "0x" + hex.EncodeToString(sum[:20])
}

// views are the pages of the dashboard but for two: the score of an agent, because fill writes no epoch that explains a
// score, and a single run, because fill writes no runs.
func (b *bench) views() []view {
	fixed := func(path string) view { return view{path, func(int) string { return path }} }
	of := func(name string, path func(n int) string) view { return view{name, path} }
	agent := func(tab string) view {
		return of("/ui/agent/{id}"+tab, func(n int) string { return "/ui/agent/" + b.agentAt(n) + tab })
	}
	return []view{
		fixed("/"), fixed("/docs"), fixed("/graphiql"),
		of("/ui/explore", func(n int) string { return "/ui/explore?" + exploreQuery(n) }),
		agent(""), agent("/ratings"), agent("/history"), agent("/work"),
		fixed(fmt.Sprintf("/ui/agent/%d:0/ratings", chainID)),
		of("/ui/reviewer/{address}", func(n int) string { return "/ui/reviewer/" + b.clientAt(n) }),
		of("/ui/reviewer/{address}/graph", func(n int) string { return "/ui/reviewer/" + b.clientAt(n) + "/graph" }),
		of("/ui/validator/{address}", func(n int) string { return "/ui/validator/" + b.clientAt(n) }),
		of("/ui/domain/{host}",
			func(n int) string { return fmt.Sprintf("/ui/domain/h%d.example", 1+n%min(b.o.Agents, 999)) }),
		of("/ui/compare", func(n int) string {
			return "/ui/compare?id=" + b.agentAt(n) + "+" + b.agentAt(n+1) + "+" + b.agentAt(n+2)
		}),
		of("/ui/offers", func(n int) string { return "/ui/offers?" + []string{"", "maxPrice=0.5", "q=work"}[n%3] }),
		of("/ui/leaders",
			func(n int) string { return "/ui/leaders?by=" + []string{"score", "reviewers", "growth"}[n%3] }),
		fixed(fmt.Sprintf("/ui/chain/%d", chainID)), fixed("/ui/validators"), fixed("/ui/tags"), fixed("/ui/trust"),
		fixed("/ui/trust/roots"), fixed("/ui/trust/parameters"), fixed("/ui/trust/attacks"), fixed("/ui/tasks"),
		fixed("/ui/runs"),
		fixed("/ui/treasury"), fixed("/ui/check"), fixed("/ui/operations"), fixed("/ui/runtime"),
	}
}

// exploreQuery returns the nth search: no filter, every kind of filter, words.
func exploreQuery(n int) string {
	return []string{"", "q=" + wordOf(n), fmt.Sprintf("tier=%d&sort=score", n%5), "service=mcp&sort=updated",
		fmt.Sprintf("maxPrice=0.%02d", 1+n%50), fmt.Sprintf("host=h%d.example", n%1000),
		fmt.Sprintf("minScore=%d&sort=score", n%100),
		"status=ok&active=true", fmt.Sprintf("q=%s&minPrice=0.%02d", wordOf(n), n%90)}[n%9]
}

// pages looks at every page. The statements are counted by a server of this process on the same database, since the
// product does not count them.
func (b *bench) pages(ctx context.Context, views int) (out []Page, err error) {
	counted, err := countingServer(ctx, b.d.URL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, counted.close()) }()
	for _, v := range b.views() {
		p, err := b.page(ctx, v, views, counted)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		b.Say("%-30s p99 %.0f ms, %d statements, %.1f kB", p.Page, p.P99, p.Statements, p.KB)
		out = append(out, p)
	}
	return out, nil
}

// page looks at one page, and at its first views once more in the server that counts statements.
func (b *bench) page(ctx context.Context, v view, views int, counted *counter) (p Page, err error) {
	p.Page = v.name
	largest, at := int64(0), 0
	all, err := each(ctx, b.address, views, 0, func(c *conn, n int) error {
		c.headers = "Accept-Encoding: gzip\r\nAuthorization: Bearer " + pageToken + "\r\n"
		size, err := c.get(v.path(n))
		if size > largest {
			largest, at = size, n
		}
		return err
	})
	if err != nil {
		return p, err
	}
	p.Times = timesOf(all)
	// The largest view decides, and the files are those that it refers to.
	files, err := b.filesOf(ctx, v.path(at))
	p.KB = float64(largest+files) / 1000
	for n := range min(views, countedViews) {
		if err == nil {
			var statements int
			statements, err = counted.view(ctx, v.path(n))
			p.Statements = max(p.Statements, statements)
		}
	}
	return p, err
}

// countedViews is how many views of a page have their statements counted: they do not depend on the machine.
const countedViews = 12

// filesOf returns the size of the scripts and styles that a page refers to, as sent. The page itself is read without
// compression, because its references are looked for in it; a file that it names twice counts once.
func (b *bench) filesOf(ctx context.Context, path string) (size int64, err error) {
	c, err := dial(ctx, b.address)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	var page bytes.Buffer
	if _, err := c.exchange(http.MethodGet, path, "", &page); err != nil {
		return 0, err
	}
	names := regexp.MustCompile(`"(/assets/[^"]+)"`).FindAllStringSubmatch(page.String(), -1)
	slices.SortFunc(names, func(a, b []string) int { return bytes.Compare([]byte(a[1]), []byte(b[1])) })
	c.headers = "Accept-Encoding: gzip\r\n"
	for _, name := range slices.CompactFunc(names, func(a, b []string) bool { return a[1] == b[1] }) {
		n, err := c.get(name[1])
		if err != nil {
			return 0, err
		}
		size += n
	}
	return size, nil
}

// targets are the figures of the worst page of each kind, with their limits.
func (m PagesMeasurements) targets() []harness.Target {
	worst := func(list []Page, of func(Page) float64) (value float64) {
		for _, p := range list {
			value = max(value, of(p))
		}
		return value
	}
	slow := func(p Page) float64 { return p.P99 }
	both := slices.Concat(m.Small, m.Full)
	size := func(graph bool) float64 {
		return worst(both, func(p Page) float64 {
			if (p.Page == "/ui/reviewer/{address}/graph") != graph {
				return 0
			}
			return p.KB
		})
	}
	return []harness.Target{
		harness.AtMost("slowest page of an index like the demo's, p99", worst(m.Small, slow), harness.Millis(mostSmall), "ms"),
		harness.AtMost("slowest page of the full index, p99", worst(m.Full, slow), harness.Millis(mostFull), "ms"),
		harness.AtMost("most statements of a page", worst(both, func(p Page) float64 { return float64(p.Statements) }),
			mostStatements, ""),
		harness.AtMost("largest page without a graph, compressed", size(false), mostPlainKB, "kB"),
		harness.AtMost("largest page with a graph, compressed", size(true), mostGraphKB, "kB"),
	}
}
