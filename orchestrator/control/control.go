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
	"repute/orchestrator/control/rest"
	"repute/orchestrator/control/treasury"
	"repute/orchestrator/operate"
	"repute/policy"
	"repute/store"
	"repute/trust/engine"
	"repute/trust/statement"
)

// Options say what the routes under /v1 serve. Server, DB, Client and Policy are needed.
type Options struct {
	// Server gets the routes, and says whose tokens are for what.
	Server *httpapi.Server
	DB     *store.DB
	Client *orchestrator.Client
	// Policy is what agents are judged by now.
	Policy func() *policy.Policy
	// Lenient is that of the engines: agents without identity may work.
	Lenient bool
	// Replay makes pinned scores again. Nil: no decision can be verified.
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
	// Tools gets OpenFi's tools, which are the routes for agents. Nil: there are none.
	Tools *mcp.Server
	// Done ends streams of events when it is closed, so that a server can stop. Nil: never.
	Done <-chan struct{}
	// Streams of events that one caller may follow at once: 8. AllStreams is how many may be followed
	// by all callers together: 256.
	Streams, AllStreams int
}

// Control answers the routes under /v1. Make one with New.
type Control struct {
	o        Options
	db       *store.DB
	client   *orchestrator.Client
	server   *httpapi.Server
	log      *slog.Logger
	router   *rest.Router
	treasury *treasury.Service
	streams  streams
	replays  chan struct{} // bounds how many scores are made again at once
}

// CheckPublicURL refuses what is no URL of a server. repute.ErrInvalid names the key of the
// configuration.
func CheckPublicURL(s string) error {
	if u, err := url.Parse(s); s != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
		return repute.Invalid("orchestrator.public_url", fmt.Sprintf("%.200q is no URL", s), "http(s)://host")
	}
	return nil
}

// New adds the routes to the server of o. It talks to nobody yet. repute.ErrInvalid: the public URL
// cannot be used.
func New(o Options) (*Control, error) {
	if err := CheckPublicURL(o.PublicURL); err != nil {
		return nil, err
	}
	o.PublicURL = strings.TrimSuffix(o.PublicURL, "/")
	httpapi.Fill(&o.Streams, 8)
	httpapi.Fill(&o.AllStreams, 256)
	c := &Control{o: o, db: o.DB, client: o.Client, server: o.Server, log: o.Server.Log,
		router: rest.New(o.Server, o.PrivateReads), replays: make(chan struct{}, 2)}
	c.streams.most, c.streams.all = o.Streams, o.AllStreams
	c.server.Protect(c.neededFor, IsPrivate)
	c.mount()
	c.treasury = treasury.Mount(c.router, c.db, o.Operator)
	c.mountIngress()
	c.mountPlain()
	c.mountFiles()
	c.describeStatuses()
	return c, c.addTools(o.Tools)
}
