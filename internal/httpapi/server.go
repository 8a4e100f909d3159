package httpapi

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humaecho"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
)

// ServerOptions say who may ask what of a server, and how much. The zero value works: nobody
// has a token.
type ServerOptions struct {
	// Tokens open the routes that change something: name to token. The name is kept with what was
	// done. Empty: those routes are closed.
	Tokens map[string]string
	// Roles say by its name what a token is for. One without an entry is for everything.
	Roles map[string][]string
	// Origins are web sites, scheme://host[:port], whose pages may ask the routes that are private.
	Origins []string
	// Registry collects the metrics of requests. Nil: a registry of its own.
	Registry *prometheus.Registry
	// Redis lets several processes share one rate limit per caller. Nil: each counts alone.
	Redis *Redis
	// Logger takes the access log and failures. Nil: slog's default.
	Logger *slog.Logger
	Limits Limits
}

// Limits bound what one request or caller may use. Zero fields get the default named in
// their comment.
type Limits struct {
	// Timeout of one request, not of streams: 15 s.
	Timeout time.Duration
	// Body is the largest request body in bytes: 512 KiB.
	Body int64
	// Rate is how many requests per second one caller may keep up: 50. Negative: no limit.
	Rate float64
	// Burst is how many may come at once: 200.
	Burst int
	// TrustedProxies may name the caller in X-Forwarded-For; from others the header is ignored.
	TrustedProxies []netip.Prefix
}

// withDefaults fills in what is not set.
func (l Limits) withDefaults() Limits {
	Fill(&l.Timeout, 15*time.Second)
	Fill(&l.Body, 512<<10)
	Fill(&l.Rate, 50)
	Fill(&l.Burst, 200)
	return l
}

// Fill sets a field that has its zero value.
func Fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Server is everything that a process serves over HTTP: one router, one OpenAPI document, and the
// middleware that every request passes. Packages add their routes to Echo or API; the first call of
// Handler writes the document. Make one with NewServer.
type Server struct {
	// Echo takes the routes that are no typed operation.
	Echo *echo.Echo
	// API takes the operations, and describes them.
	API huma.API
	// Registry has the metrics of requests; routes add theirs.
	Registry *prometheus.Registry
	Log      *slog.Logger
	Limits   Limits

	tokens  []Token
	origins []string
	limiter *Limiter
	metrics *metrics
	// Rules of the routes that are not for everybody: see Protect. Never nil.
	needs   func(*http.Request, string) []Role
	private func(string) bool
	rewrite func(*url.URL)
	streams map[string]bool // routes that answer for as long as the caller listens
	raw     map[string]bool // routes that read their body themselves, or compress by themselves
}

// NewServer makes a server without routes. It talks to nobody yet. repute.ErrInvalid names the key of
// the configuration whose token or role cannot be used.
func NewServer(o ServerOptions) (*Server, error) {
	s := &Server{Echo: echo.New(), Registry: o.Registry, Log: o.Logger, Limits: o.Limits.withDefaults(),
		origins: o.Origins,
		needs:   func(*http.Request, string) []Role { return nil }, private: func(string) bool { return false },
		streams: map[string]bool{}, raw: map[string]bool{}}
	if s.Log == nil {
		s.Log = slog.Default()
	}
	if s.Registry == nil {
		s.Registry = prometheus.NewRegistry()
	}
	var err error
	if s.tokens, err = ReadTokens(o.Tokens, o.Roles); err != nil {
		return nil, err
	}
	if s.metrics, err = newMetrics(s.Registry); err != nil {
		return nil, err
	}
	s.limiter = NewLimiter("rate", s.Limits.Rate, s.Limits.Burst, o.Redis, s.Log)
	if err := s.watchRedis(); err != nil {
		return nil, err
	}
	s.use()
	s.API = huma.NewAPI(document(), literal{humaecho.New(s.Echo, document()).Adapter()})
	s.API.UseMiddleware(s.checkQuery)
	return s, nil
}

// Protect says which roles a request takes, by its method and route as the router writes it (none:
// it is open to all), and which paths, of a request or as the router writes them, show what not
// everybody may see: pages of other sites may not ask for these.
func (s *Server) Protect(needs func(r *http.Request, route string) []Role, private func(path string) bool) {
	s.needs, s.private = needs, private
}

// Rewrite brings the URL of a request into the form that routes know, before the router sees it.
func (s *Server) Rewrite(f func(*url.URL)) { s.rewrite = f }

// Handler serves every route that was added. HEAD is answered wherever GET is, ids may come
// percent-encoded, and a slash at the end of a path changes nothing.
func (s *Server) Handler() (http.Handler, error) {
	doc, err := describe(s.API.OpenAPI())
	if err != nil {
		return nil, err
	}
	s.Echo.GET(documentPath, func(c echo.Context) error {
		return c.Blob(http.StatusOK, "application/openapi+json", doc)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A copy: the server must still see HEAD to leave the body out.
		in, u := *r, *r.URL
		// The router would match, and hand on, an escaped path as it is.
		u.RawPath, in.URL = "", &u
		if trimmed := strings.TrimRight(u.Path, "/"); trimmed != "" && !s.raw[trimmed+"/*"] {
			u.Path = trimmed
		}
		if r.Method == http.MethodHead && !strings.HasSuffix(u.Path, "/events") { // a stream has no end to measure
			in.Method = http.MethodGet
		}
		if s.rewrite != nil {
			s.rewrite(&u)
		}
		s.Echo.ServeHTTP(w, &in)
	}), nil
}

// checkQuery refuses parameters that an operation does not have.
func (s *Server) checkQuery(ctx huma.Context, next func(huma.Context)) {
	u := ctx.URL()
	if err := checkQuery(&u, ctx.Operation().Parameters); err != nil {
		s.Fail(ctx.Context(), err).Write(humaecho.Unwrap(ctx).Response())
		return
	}
	next(ctx)
}

// Fail prepares an error for the wire and logs it when it is ours to mend.
func (s *Server) Fail(ctx context.Context, err error) *ErrorBody { return Report(ctx, s.Log, err) }

// Problems documents the answers that are no success, once for every operation.
func (s *Server) Problems() *huma.Response {
	return &huma.Response{Description: "What went wrong, as RFC 9457 problem details: 400 a field is wrong, 401 a bearer " +
		"token is missing or wrong, 403 the token has not the role, 404 nothing of that name, 409 what is stored forbids it, " +
		"429 too many requests, 503 a dependency is away (see Retry-After).",
		Content: map[string]*huma.MediaType{ProblemType: {
			Schema: s.API.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[ErrorBody](), true, "")}}}
}

// CheckRedis asks Redis, where there is one to be asked, and logs when it does not
// answer: a service should say so when it starts, not when the first request comes.
func (s *Server) CheckRedis(ctx context.Context) { s.limiter.Redis(ctx) }

// Redis says whether callers are counted together now: ok, away, or "" where no Redis is configured.
func (s *Server) Redis(ctx context.Context) string { return s.limiter.Redis(ctx) }

// watchRedis publishes whether Redis answers, where there is one.
func (s *Server) watchRedis() error {
	if !s.limiter.Shared() {
		return nil
	}
	up := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "repute_redis_up",
		Help: "1 while Redis answers; while it does not, every process counts its callers alone."},
		func() float64 {
			if s.limiter.Redis(context.Background()) == "ok" {
				return 1
			}
			return 0
		})
	if err := s.Registry.Register(up); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Limiter counts the callers of something that costs more than a request, in the Redis of the server.
func (s *Server) Limiter(name string, perSecond float64, burst int) *Limiter {
	l := NewLimiter(name, perSecond, burst, nil, s.Log)
	if s.limiter.shared != nil {
		l = NewLimiter(name, perSecond, burst, s.limiter.shared.client, s.Log)
	}
	return l
}

// NoRoute is the answer where there is nothing.
func NoRoute() *ErrorBody {
	b := NewError(http.StatusNotFound, "not_found", "Not found", "no such route")
	b.Hint = "GET " + documentPath + " or /docs lists the routes"
	return b
}
