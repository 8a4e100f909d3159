package control

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"repute"
	"repute/internal/httpapi"
	"repute/mcp"
	"repute/orchestrator"
	"repute/orchestrator/operate"
	"repute/policy"
	"repute/store"
	"repute/trust/engine"
	"repute/trust/statement"
)

// Options say what the handler serves. DB, Client and Policy are needed.
type Options struct {
	DB     *store.DB
	Client *orchestrator.Client
	// Policy is what agents are judged by now.
	Policy func() *policy.Policy
	// Lenient is that of the engines: agents without identity may work.
	Lenient bool
	// Replay makes pinned scores again. Nil: no verdict can be verified.
	Replay *engine.Reader
	// Keys are those that sign the heads of decisions, the one in use and retired ones. None:
	// heads need no signature, and answers say so.
	Keys []statement.Key
	// Gates are those that a task may demand. Nil: none.
	Gates []string
	// Modules are the agents of this binary, which say at once which tasks they do not take.
	Modules []orchestrator.Module
	// Agents asks agents elsewhere who they are, and guards what may be reached. Nil: none
	// can be registered.
	Agents *http.Client
	// Tokens open the routes that change something: name to token. The name is kept with
	// what was done. Empty: those routes are closed.
	Tokens map[string]string
	// Roles say by its name what a token is for: ask, approve, operate, read. One without an
	// entry is for everything.
	Roles map[string][]string
	// PrivateReads asks for a token also of who reads tasks, runs, receipts, acts and logs.
	PrivateReads bool
	// Coordinator is the slug of the agent whose files are served under /.well-known/.
	// Empty: none are.
	Coordinator string
	// PublicURL is where callers reach this handler, for links in published files. Empty:
	// files have no links.
	PublicURL string
	// Operator acts on chains for the operator of this service. Nil: no wallet is
	// configured, and its routes say so.
	Operator *operate.Operator
	// DefaultChain completes bare token ids where several chains are indexed.
	DefaultChain uint64
	// Origins are web sites, scheme://host[:port], whose pages may read what tasks and the
	// operator did.
	Origins []string
	// Tools gets OpenFi's tools, which are the routes for agents. Nil: there are none.
	Tools *mcp.Server
	// Done ends streams of events when it is closed, so that a server can stop. Nil: never.
	Done <-chan struct{}
	// Redis lets several processes share one rate limit per caller. Nil: each counts alone.
	Redis  *redis.Client
	Logger *slog.Logger // nil: slog's default
	Limits Limits
}

// Limits bound what one request or caller may use. Zero fields get the default named in
// their comment.
type Limits struct {
	Timeout time.Duration // of one request, not of streams: 15 s
	Body    int64         // largest request body in bytes: 512 KiB
	// Rate is how many requests per second one caller may keep up: 50. Negative: no limit.
	Rate    float64
	Burst   int // how many may come at once: 200
	Streams int // of events that one caller may follow at once: 8
	// AllStreams is how many may be followed by all callers together: 256.
	AllStreams int
	// TrustedProxies may name the caller in X-Forwarded-For.
	TrustedProxies []netip.Prefix
}

// withDefaults fills in what is not set.
func (l Limits) withDefaults() Limits {
	fill(&l.Timeout, 15*time.Second)
	fill(&l.Body, 512<<10)
	fill(&l.Rate, 50)
	fill(&l.Burst, 200)
	fill(&l.Streams, 8)
	fill(&l.AllStreams, 256)
	return l
}

// fill sets a field that has its zero value.
func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Control is the handler with its parts. Make one with New.
type Control struct {
	o       Options
	db      *store.DB
	client  *orchestrator.Client
	tokens  []token
	log     *slog.Logger
	limits  Limits
	limiter *httpapi.Limiter
	streams streams
	replays chan struct{} // bounds how many scores are made again at once
	echo    *echo.Echo
	huma    huma.API
	openapi []byte
}

// prefix is where the routes are.
const prefix = "/v1"

// Check refuses tokens, roles and a public URL that New refuses, without what New needs. The
// error is repute.ErrInvalid and names the key of the configuration.
func (o *Options) Check() error {
	_, err := o.access()
	return err
}

// access is who may do what.
func (o *Options) access() ([]token, error) {
	if u, err := url.Parse(o.PublicURL); o.PublicURL != "" && (err != nil || u.Host == "" || u.Scheme != "https" &&
		u.Scheme != "http") {
		return nil, repute.Invalid("orchestrator.public_url", fmt.Sprintf("%.200q is no URL", o.PublicURL), "http(s)://host")
	}
	tokens, err := readTokens(o.Tokens)
	if err != nil {
		return nil, err
	}
	return tokens, readRoles(tokens, o.Roles)
}

// New builds the handler. It talks to nobody yet. repute.ErrInvalid: a token or the
// public URL cannot be used.
func New(o Options) (*Control, error) {
	c := &Control{o: o, db: o.DB, client: o.Client, log: o.Logger, limits: o.Limits.withDefaults(), echo: echo.New(),
		replays: make(chan struct{}, 2)}
	if c.log == nil {
		c.log = slog.Default()
	}
	c.limiter = httpapi.NewLimiter("v1", c.limits.Rate, c.limits.Burst, o.Redis, c.log)
	c.streams.most, c.streams.all = c.limits.Streams, c.limits.AllStreams
	var err error
	if c.tokens, err = o.access(); err != nil {
		return nil, err
	}
	c.o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	c.use()
	c.huma = huma.NewAPI(humaConfig(), httpapi.Literal{Adapter: humaecho.New(c.echo, humaConfig()).Adapter()})
	c.mount()
	c.mountActs()
	c.mountIngress()
	c.mountPlain()
	c.mountFiles()
	c.describeStatuses()
	if c.openapi, err = httpapi.Describe(c.huma.OpenAPI()); err != nil {
		return nil, err
	}
	return c, c.addTools(o.Tools)
}

// Handler serves the routes and nothing else.
func (c *Control) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in, u := *r, *r.URL
		// The router would match, and hand on, an escaped path as it is.
		u.RawPath, in.URL = "", &u
		if r.Method == http.MethodHead && !strings.HasSuffix(u.Path, "/events") { // a stream has no end to measure
			in.Method = http.MethodGet
		}
		c.echo.ServeHTTP(w, &in)
	})
}

// Over serves the routes, and everything else by next.
func (c *Control) Over(next http.Handler) http.Handler {
	mine := c.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if path == prefix || strings.HasPrefix(path, prefix+"/") || c.o.Coordinator != "" && wellKnown(path) {
			mine.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// wellKnown reports whether a path is one of the files that are served under /.well-known/.
func wellKnown(path string) bool {
	name, below := strings.CutPrefix(path, "/.well-known/")
	return below && (name == registrationFile || name == manifestFile || name == logFile)
}
