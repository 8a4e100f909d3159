package control

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"repute"
	"repute/internal/httpapi"
	"repute/mcp"
	"repute/orchestrator"
	"repute/orchestrator/control/apikeys"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/control/treasury"
	"repute/orchestrator/control/webhooks"
	"repute/orchestrator/operate"
	"repute/orchestrator/tasks"
	"repute/policy"
	"repute/store"
	"repute/trust/explain"
	"repute/trust/statement"
)

// Options configure the routes under /v1. Server, DB, Client and Policy are required.
type Options struct {
	// Server receives the routes and knows the tokens with their roles.
	Server *httpapi.Server
	DB     *store.DB
	Client *tasks.Client
	// Policy returns the current policy, which judges agents.
	Policy func() *policy.Policy
	// Lenient is the setting of the engines: agents without identity may work.
	Lenient bool
	// Replay computes pinned scores again. Nil: no decision can be verified.
	Replay *explain.Reader
	// Keys verify the signatures of the heads of decisions: the current key and retired ones. None:
	// heads need no signature, and answers say so.
	Keys []statement.Key
	// Gates are the names of the gates that a task may demand. Nil: none.
	Gates []string
	// Modules are the agents of this binary. They refuse unsuitable tasks at submission.
	Modules []orchestrator.Module
	// Agents is the client for the servers of registered agents, and limits the addresses that it
	// may reach. Nil: no agent can be registered.
	Agents *http.Client
	// PrivateReads requires a token also for reading tasks, runs, receipts, operator actions and
	// logs.
	PrivateReads bool
	// Coordinator is the slug of the agent whose files are served under /.well-known/. Empty: no
	// files are served there.
	Coordinator string
	// PublicURL is the public URL of this handler, for links in published files. Empty: the files
	// have no links.
	PublicURL string
	// Operator carries out operator actions. Nil: no wallet is configured, and the routes answer
	// so.
	Operator *operate.Operator
	// DefaultChain completes bare token ids where several chains are indexed.
	DefaultChain uint64
	// Webhooks says how test messages are sent and which URLs webhooks may have. Its database is set by New.
	Webhooks webhooks.Options
	// Tools receives OpenFi's tools, which do the same as the routes. Nil: no tools.
	Tools *mcp.Server
	// Done ends streams of events when it is closed, so that a server can stop. Nil: never.
	Done <-chan struct{}
	// Streams is how many streams of events one caller may follow at the same time: 8. AllStreams
	// is the limit for all callers together: 256.
	Streams, AllStreams int
}

// Control answers the routes under /v1. Make one with New.
type Control struct {
	o        Options
	db       *store.DB
	client   *tasks.Client
	server   *httpapi.Server
	log      *slog.Logger
	router   *rest.Router
	treasury *treasury.Service
	streams  httpapi.StreamLimit
	replays  chan struct{} // bounds how many scores are replayed at the same time
}

// CheckPublicURL refuses a text that is not the URL of a server. repute.ErrInvalid names the key of
// the configuration.
func CheckPublicURL(s string) error {
	if u, err := url.Parse(s); s != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		return repute.Invalid("orchestrator.public_url", fmt.Sprintf("%.200q is no URL", s), "http(s)://host")
	}
	return nil
}

// New adds the routes to the server of o. It makes no request. An unusable public URL is
// repute.ErrInvalid. The error for a route below /v1 without a role names the route: who may use a
// route MUST be decided before it is served.
func New(o Options) (*Control, error) {
	if err := CheckPublicURL(o.PublicURL); err != nil {
		return nil, err
	}
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	httpapi.Fill(&o.Streams, 8)
	httpapi.Fill(&o.AllStreams, 256)
	c := &Control{o: o, db: o.DB, client: o.Client, server: o.Server, log: o.Server.Log,
		router: rest.New(o.Server, o.PrivateReads), replays: make(chan struct{}, 2)}
	c.streams.Caller, c.streams.All = o.Streams, o.AllStreams
	c.server.Protect(c.neededFor, IsPrivate)
	c.mount()
	c.treasury = treasury.Mount(c.router, c.db, o.Operator)
	o.Webhooks.DB = o.DB
	webhooks.Mount(c.router, o.Webhooks)
	apikeys.Mount(c.router, c.db)
	c.mountIngress()
	c.mountPlain()
	c.mountFiles()
	c.describeStatuses()
	if err := checkRoles(c.server.Echo.Routes()); err != nil {
		return nil, err
	}
	return c, c.addTools(o.Tools)
}
