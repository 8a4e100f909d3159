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
	"github.com/redis/go-redis/v9"
)

// ServerOptions configure tokens and limits of a server. The zero value is usable and has no
// tokens.
type ServerOptions struct {
	// Tokens are required by routes that change something: name to token. The name is stored with
	// the change. Empty: those routes refuse every request.
	Tokens map[string]string
	// Roles are the roles of a token by its name. A token without an entry has all roles.
	Roles map[string][]string
	// Origins are web sites, scheme://host[:port], whose pages may use private routes.
	Origins []string
	// Registry collects the metrics of requests. Nil: a registry of its own.
	Registry *prometheus.Registry
	// Redis lets several processes count together. Nil: each counts alone.
	Redis *redis.Client
	// Logger receives the access log and failures. Nil: slog's default.
	Logger *slog.Logger
	Limits Limits
	// Keys finds the API keys that raise the limits of their callers. Nil: there are none.
	Keys KeySource
}

// Limits bound the use by one request or caller. Zero fields have the default named in their
// comment.
type Limits struct {
	// Timeout of one request, not of streams: 15 s.
	Timeout time.Duration
	// Body is the largest request body in bytes: 512 KiB.
	Body int64
	// Rate is the sustained number of requests per second of one caller: 50. Negative: no limit.
	Rate float64
	// Burst is the largest number of requests at once: 200.
	Burst int
	// TrustedProxies may name the caller in X-Forwarded-For; from others the header is ignored.
	TrustedProxies []netip.Prefix
}

// withDefaults replaces zero values by defaults.
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
	// Echo is the router for routes that are no typed operations.
	Echo *echo.Echo
	// API is the router for typed operations, which it describes.
	API huma.API
	// Registry has the metrics of requests; routes add their own.
	Registry *prometheus.Registry
	Log      *slog.Logger
	Limits   Limits

	tokens  []Token
	keys    *keyring
	origins []string
	redis   *redis.Client // nil: each process counts alone
	limiter *Limiter
	answers *answerCache // nil: answers are not kept
	metrics *metrics
	// Rules of the routes that are not for everybody: see Protect. Never nil.
	needs   func(*http.Request, string) []Role
	private func(string) bool
	rewrite func(*url.URL)
	streams map[string]bool // routes that answer until the caller disconnects
	raw     map[string]bool // routes that read their body themselves, or compress by themselves
}

// NewServer returns a server without routes. It makes no request. repute.ErrInvalid names the
// configuration key of an unusable token or role.
func NewServer(o ServerOptions) (*Server, error) {
	s := &Server{Echo: echo.New(), Registry: o.Registry, Log: o.Logger, Limits: o.Limits.withDefaults(),
		origins: o.Origins, keys: newKeyring(o.Keys), redis: o.Redis,
		needs: func(*http.Request, string) []Role { return nil }, private: func(string) bool { return false },
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
// everybody may see: pages of other sites may not ask for these. Without a call all routes are open. It MUST be called
// before the first request.
func (s *Server) Protect(needs func(r *http.Request, route string) []Role, private func(path string) bool) {
	s.needs, s.private = needs, private
}

// Rewrite brings the URL of a request into the form that routes know, before the router sees it.
func (s *Server) Rewrite(f func(*url.URL)) { s.rewrite = f }

// Handler returns the handler of all routes. HEAD is answered like GET, ids may be percent-encoded,
// and a slash at the end of a path is ignored. Paths of the router are in decoded form, so that an id with an escaped
// colon finds its route.
func (s *Server) Handler() (http.Handler, error) {
	doc, err := describe(s.API.OpenAPI())
	if err != nil {
		return nil, err
	}
	s.Raw(documentPath)
	s.Echo.GET(documentPath, NewFixed("application/openapi+json", doc).Send)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The copy keeps HEAD in the original request, by which the server omits the body.
		in, u := *r, *r.URL
		// Otherwise the router would match the escaped path.
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

// checkQuery refuses parameters that an operation does not have, and wrong values.
func (s *Server) checkQuery(ctx huma.Context, next func(huma.Context)) {
	u := ctx.URL()
	if err := checkQuery(&u, ctx.Operation().Parameters); err != nil {
		s.Fail(ctx.Context(), err).Write(humaecho.Unwrap(ctx).Response())
		return
	}
	next(ctx)
}

// Fail converts an error to a response, and logs it if it is a fault of this service.
func (s *Server) Fail(ctx context.Context, err error) *ErrorBody { return Report(ctx, s.Log, err) }

// Problems documents the answers that are no success, once for every operation.
func (s *Server) Problems() *huma.Response {
	return &huma.Response{Description: "What went wrong, as RFC 9457 problem details: 400 a field is wrong, 401 a bearer " +
		"token is missing or wrong, 403 the token lacks the role, 404 nothing of that name, 409 what is stored forbids it, " +
		"429 too many requests, 503 a dependency is away (see Retry-After).",
		Content: map[string]*huma.MediaType{ProblemType: {
			Schema: s.API.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[ErrorBody](), true, "")}}}
}

// Redis returns whether callers are counted together now: "ok", "away", or "" without a configured Redis. It asks Redis
// at most once a second, and logs when that begins or ends to answer.
func (s *Server) Redis(ctx context.Context) string {
	switch {
	case s.redis == nil:
		return ""
	case s.limiter.shared.up(ctx):
		return "ok"
	}
	return "away"
}

// watchRedis exports whether a configured Redis answers.
func (s *Server) watchRedis() error {
	if s.redis == nil {
		return nil
	}
	up := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "repute_redis_up",
		Help: "1 while Redis answers; while it does not, every process counts its callers alone."},
		func() float64 {
			if s.Redis(context.Background()) == "ok" {
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
	return NewLimiter(name, perSecond, burst, s.redis, s.Log)
}

// NoRoute returns the answer for an unknown path.
func NoRoute() *ErrorBody {
	b := NewError(http.StatusNotFound, "not_found", "Not found", "no such route")
	b.Hint = "GET " + documentPath + " or /docs lists the routes"
	return b
}
