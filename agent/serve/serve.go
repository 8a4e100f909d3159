package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/ethereum/go-ethereum/common"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/propagation"

	"repute/agent"
	"repute/agent/capability"
	"repute/internal/httpapi"
)

// Profile is what an agent says of itself.
type Profile struct {
	Name, Description, Image string
	// URL is where clients reach the agent, without a slash at the end. Empty: the host of each
	// request.
	URL string
	// PolicyURI is where the policy is published; empty for none.
	PolicyURI string
	// SupportedTrust are trust models by ERC-8004, such as reputation.
	SupportedTrust []string
}

// Options configure the surface.
type Options struct {
	Router  *agent.Router
	Profile Profile
	// Owners are the agent's owner and wallet: they read receipts in full.
	Owners func() []common.Address
	// PublicReceipts shows everybody amounts and signatures of receipts.
	PublicReceipts bool
	// MaxBody bounds requests in bytes: the largest of the capabilities' when 0.
	MaxBody int64
	// Rate and Burst limit each caller, in requests per second and at once: 5 and 30 when 0.
	Rate  float64
	Burst int
	// Proxies are networks of reverse proxies whose X-Forwarded-For names the caller.
	Proxies  []netip.Prefix
	Registry *prometheus.Registry
	Log      *slog.Logger
	// Mounts are other surfaces of the same agent, under the same limits.
	Mounts []Mount
	// Manifest is the agent.json of the agent, and DID the DID document of its domain; nil: there is none.
	Manifest, DID json.RawMessage
	// Card returns the agent card for clients that reach the agent at a URL; nil: there is none.
	Card func(ctx context.Context, base string) (json.RawMessage, error)
}

// Mount is a surface that bounds bodies and signs answers itself.
type Mount struct {
	// Path is where its handler is, without parameters; Below says that the handler has the paths below
	// it, too.
	Path    string
	Below   bool
	Methods []string
	Handler http.Handler
	// Stream says that GET answers until the client disconnects.
	Stream bool
	// Name, Endpoint and Version are those of the service in the registration file; no Name: it is not
	// listed there.
	Name, Endpoint, Version string
}

// surface serves an agent.
type surface struct {
	o      Options
	router *agent.Router
	server *httpapi.Server
}

// answerTime bounds a request: the longest handler, and the settlement of its payment.
const answerTime = capability.MaxTimeout + 2*time.Minute

// jsonType is the media type of answers.
const jsonType = "application/json"

// New returns the handler of an agent.
func New(o Options) (http.Handler, error) {
	if o.MaxBody == 0 {
		for _, s := range o.Router.Services() {
			o.MaxBody = max(o.MaxBody, s.Definition().MaxRequestBytes)
		}
	}
	httpapi.Fill(&o.MaxBody, capability.DefaultMaxBytes)
	httpapi.Fill(&o.Rate, 5)
	httpapi.Fill(&o.Burst, 30)
	server, err := httpapi.NewServer(httpapi.ServerOptions{Registry: o.Registry, Logger: o.Log,
		Limits: httpapi.Limits{Timeout: answerTime, Body: o.MaxBody, Rate: o.Rate, Burst: o.Burst,
			TrustedProxies: o.Proxies}})
	if err != nil {
		return nil, err
	}
	s := &surface{o: o, router: o.Router, server: server}
	s.describe()
	s.mount()
	s.describeProblems()
	if err := s.mountOthers(); err != nil {
		return nil, err
	}
	inner, err := server.Handler()
	if err != nil {
		return nil, err
	}
	return traced(s.signing(inner)), nil
}

// traced lets the spans of a request continue the trace of its client (W3C Trace Context).
func traced(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// describe is the head of the OpenAPI document.
func (s *surface) describe() {
	info := s.server.API.OpenAPI().Info
	info.Title, info.Version = s.o.Profile.Name, s.router.Version()
	info.Description = "An agent of the ERC-8004 registries, by the Agent Runtime Specification 1.0. Every answer is " +
		"signed (EIP-712, type TaskResponse), but for 429 to callers that ask too often: see the headers X-Agent-*. Capabilities that cost something answer 402 " +
		"with what they cost, for x402 of versions 1 and 2. Errors are RFC 9457 problem details with the " +
		"members error and message."
}

// describeProblems adds the members of problems that clients of the specification read. Codes are more
// than those of the rest of the project.
func (s *surface) describeProblems() {
	problem := s.server.API.OpenAPI().Components.Schemas.Map()[reflect.TypeFor[httpapi.ErrorBody]().Name()]
	if problem == nil {
		return
	}
	problem.Properties["code"].Enum = nil
	problem.Properties["error"] = &huma.Schema{Type: huma.TypeString, Description: "the same as code"}
	problem.Properties["message"] = &huma.Schema{Type: huma.TypeString, Description: "the same as detail"}
}

// mount adds the routes.
func (s *surface) mount() {
	e := s.server.Echo
	e.POST("/capability/:name", s.capability)
	op := s.server.Describe(http.MethodPost, httpapi.Route{Path: "/capability/{name}", ID: "runCapability",
		Summary:     "Runs a capability; the body is its input, the answer its output, both by its schemas",
		ContentType: jsonType, Params: []*huma.Param{httpapi.TextParam("name", "path",
			"Name of a capability: see /health")},
		Schema: &huma.Schema{}, Example: map[string]any{"echo": "hello"}})
	op.RequestBody = &huma.RequestBody{Required: true, Description: "Input by the capability's schema",
		Content: map[string]*huma.MediaType{jsonType: {Schema: &huma.Schema{},
			Example: map[string]any{"text": "hello"}}}}
	op.Responses["402"] = &huma.Response{Description: "What the capability costs, in the header PAYMENT-REQUIRED for " +
		"x402 of version 2, in the body for version 1, and in the headers X-Payment-*",
		Content: map[string]*huma.MediaType{jsonType: {Schema: &huma.Schema{Type: huma.TypeObject}}}}
	s.get("/health", "health", "How the agent works, and what it can do", s.health)
	s.get("/health/ready", "ready", "Reports whether requests can be answered now; 503 where not", s.ready)
	s.get("/healthz", "alive", "Reports that the process runs", func(c echo.Context) error {
		return c.JSON(http.StatusOK, map[string]string{"status": "ok"})
	})
	s.get("/.well-known/agent-registration.json", "registration",
		"The registration file, by ERC-8004 and the specification", s.registration)
	s.get("/.well-known/agent-card.json", "card", "The agent card, by A2A", s.card)
	s.get("/.well-known/agent.json", "manifest", "The manifest agent.json: intents, prices and identity",
		func(c echo.Context) error { return published(c, s.o.Manifest) })
	s.get("/.well-known/did.json", "did", "The DID document of the agent's domain, which has the manifest's key",
		func(c echo.Context) error { return published(c, s.o.DID) })
	for path, id := range map[string]string{"/agent/{id}/receipts": "receipts",
		"/agents/{id}/receipts": "agentReceipts"} {
		params := append(receiptParams(), httpapi.TextParam("id", "path", "The agent's id, in any form"))
		s.server.Get(httpapi.Route{Path: path, ID: id, ContentType: jsonType, Params: params,
			Summary: "Paid executions, the newest first. Amounts and signatures are for the owner and the client concerned, " +
				"who sign the request", Schema: &huma.Schema{Type: huma.TypeArray,
				Items: &huma.Schema{Type: huma.TypeObject}},
			Example: []receipt{{ReceiptID: "1-1", TaskHash: common.Hash{}.Hex(), Settlement: "x402"}}},
			httpapi.Strict(receiptParams(), s.receipts))
	}
	s.server.Get(httpapi.Route{Path: "/metrics", ID: "metrics", ContentType: "text/plain",
		Example: "agent_uptime_seconds 1\n", Summary: "Metrics in the text format of Prometheus"},
		echo.WrapHandler(promhttp.HandlerFor(s.server.Registry,
			promhttp.HandlerOpts{Registry: s.server.Registry, DisableCompression: true})))
}

// get adds a route that answers an object.
func (s *surface) get(path, id, summary string, handle echo.HandlerFunc) {
	s.server.Get(httpapi.Route{Path: path, ID: id, Summary: summary, ContentType: jsonType,
		Schema: &huma.Schema{Type: huma.TypeObject}, Example: map[string]any{"status": "ok"}}, handle)
}

// base is where the caller reaches the agent.
func (s *surface) base(r *http.Request) string {
	if s.o.Profile.URL != "" {
		return strings.TrimRight(s.o.Profile.URL, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + httpapi.Clean(r.Host)
}

// healthBody is the body of /health (section 4.1).
type healthBody struct {
	Status            string      `json:"status"` // healthy, degraded, maintenance or shutdown
	AgentID           string      `json:"agentId"`
	Version           string      `json:"version"`
	Uptime            int64       `json:"uptime"` // seconds
	Capabilities      []string    `json:"capabilities"`
	AcceptingRequests bool        `json:"acceptingRequests"`
	Score             *ownScore   `json:"reputation,omitempty"`
	Heartbeat         *agent.Beat `json:"heartbeat,omitempty"`
}

// ownScore is the own score with its age.
type ownScore struct {
	agent.Score
	AgeSeconds int64 `json:"ageSeconds"`
}

// health answers in every mode, also when no requests are accepted.
func (s *surface) health(c echo.Context) error {
	mode, accepting := s.router.Mode()
	id := s.router.ID()
	b := healthBody{Status: string(mode), AgentID: id.TokenID.Dec(), Version: s.router.Version(),
		Uptime: int64(s.router.Uptime().Seconds()), Capabilities: s.router.Names(), AcceptingRequests: accepting,
		Heartbeat: s.router.Heartbeat()}
	if mode == agent.Normal {
		b.Status = "healthy"
	}
	if score := s.router.Score(); score != nil {
		b.Score = &ownScore{*score, int64(time.Since(score.At).Seconds())}
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, b)
}

// readyTime bounds the question to the database.
const readyTime = 3 * time.Second

// ready answers 503 where a load balancer should send requests elsewhere: in a mode that accepts none, and without the
// database.
func (s *surface) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), readyTime)
	defer cancel()
	c.Response().Header().Set("Cache-Control", "no-store")
	if mode, accepting := s.router.Mode(); !accepting {
		c.Response().Header().Set(httpapi.RetryAfter, "30")
		return c.JSON(http.StatusServiceUnavailable, map[string]string{"status": "unavailable", "mode": string(mode)})
	}
	if err := s.router.Ready(ctx); err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]string{"status": "ready"})
}
