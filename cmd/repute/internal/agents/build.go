package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"repute"
	"repute/agent"
	"repute/agent/capability"
	agentconfig "repute/agent/config"
	"repute/agent/governance"
	"repute/agent/handler"
	"repute/agent/llm/oafagent"
	"repute/agent/registry"
	"repute/agent/reputation"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/contracts"
	"repute/internal/tracing"
	"repute/orchestrator/settlement"
	"repute/orchestrator/wallet"
	"repute/orchestrator/wallet/keys"
	"repute/resolver"
	"repute/store"
	"repute/store/agentdb"
	"repute/x402"
	"repute/x402/facilitator"
)

// builder makes an agent of its configuration. The fields of its first part are given, the others are set by the steps
// of build, each by one step and read by later ones.
type builder struct {
	program  *cli.Program
	main     *config.Config      // of repute: database, wallets, hosts that may be asked
	config   *agentconfig.Config // of the agent
	db       *store.DB
	log      *slog.Logger
	registry *prometheus.Registry
	resume   bool // serve again after a shutdown for low reputation

	id      repute.AgentID
	chain   *registry.Registry
	signer  keys.Signer        // signs every answer
	payTo   common.Address     // account that is paid
	scores  *reputation.Client // nil: there is no index
	payment x402.Facilitator   // nil: no payment can be settled
	sender  *wallet.Wallet     // nil: none is needed
	local   func(uint64) bool  // chains on which payments can be settled
	handler http.Handler
	tracer  trace.Tracer                   // nil: nothing is traced
	servers map[string]*handler.MCPProgram // by command, so that capabilities share one
	rates   oafagent.Rates                 // of calls of MCP servers, which all capabilities share
	out     *process
	closers []func() // of what was opened, in that order
}

// close ends what build opened, also where it failed half way. They are closed in the order in which they were opened:
// the traces are sent first, and the wallet ends after them.
func (b *builder) close() {
	for _, c := range b.closers {
		c()
	}
}

// build makes the agent and checks that it may be served. A step may use what earlier ones set, and nothing of later
// ones.
func (b *builder) build(ctx context.Context) error {
	b.out = &process{config: b.config, log: b.log}
	// The key is checked before the network is asked: a mistake in the configuration is told at once.
	for _, step := range []func(context.Context) error{b.tracing, b.keys, b.identity, b.facilitator, b.runtime} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	var err error
	b.handler, err = b.surface()
	return err
}

// tracing opens the collector that the environment of OpenTelemetry names.
func (b *builder) tracing(ctx context.Context) error {
	traces, err := tracing.Open(ctx, config.Version, nil, b.log)
	if err != nil || traces == nil {
		return err
	}
	b.tracer = traces.Tracer("repute/agent")
	b.closers = append(b.closers, func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), traceTime)
		defer cancel()
		if err := traces.Shutdown(ctx); err != nil {
			b.log.Warn("the last traces are lost", "error", err)
		}
	})
	return nil
}

// traceTime bounds sending the last traces at the end.
const traceTime = 5 * time.Second

// identity opens the chain and completes the agent's id. The chain's id is asked of the nodes first, by a registry
// without contracts: only then are the known contracts of the chain found. Addresses of the configuration win over the
// known ones, and agent.validations replaces all of them.
func (b *builder) identity(ctx context.Context) error {
	a := &b.config.Agent
	ref, err := repute.ParseAgentRef(string(a.ID))
	if err != nil {
		return repute.Invalid("agent.id", fmt.Sprintf("%.80q is no agent id", a.ID), repute.AgentIDForms+" (AGENT_ID)")
	}
	asked, err := registry.Open(registry.Options{ID: repute.AgentID{ChainID: ref.ChainID}, RPC: a.RPC})
	if err != nil {
		return err
	}
	defer asked.Close()
	b.id = repute.AgentID{TokenID: ref.TokenID}
	if b.id.ChainID, err = asked.ChainID(ctx); err != nil {
		return err
	}
	if ref.ChainID != 0 && ref.ChainID != b.id.ChainID {
		return repute.Invalid("agent.rpc",
			fmt.Sprintf("its nodes are of chain %d, the agent of %d", b.id.ChainID, ref.ChainID),
			"nodes of the agent's chain (RPC_URL)")
	}
	o := registry.Options{RPC: a.RPC}
	if d, err := contracts.FindDeployment(fmt.Sprint(b.id.ChainID)); err == nil {
		known := d.Chain()
		b.id.Registry, o.Reputation, o.Validations = known.Identity, known.Reputation, known.Validations
	}
	if ref.Registry != nil {
		b.id.Registry = *ref.Registry
	}
	for _, at := range []struct {
		field, text string
		into        *common.Address
	}{{"agent.registry", a.Registry, &b.id.Registry}, {"agent.reputation", a.Reputation, &o.Reputation}} {
		if at.text == "" {
			continue
		}
		if *at.into, err = repute.ParseAddress(at.field, at.text); err != nil {
			return err
		}
	}
	if (b.id.Registry == common.Address{}) {
		return repute.Invalid("agent.registry", "is missing, and none is known of this chain",
			"an address (AGENT_REGISTRY_CONTRACT)")
	}
	if len(a.Validations) > 0 {
		o.Validations = nil
	}
	for _, text := range a.Validations {
		at, err := repute.ParseAddress("agent.validations", text)
		if err != nil {
			return err
		}
		o.Validations = append(o.Validations, at)
	}
	o.ID = b.id
	if b.chain, err = registry.Open(o); err == nil {
		b.closers = append(b.closers, b.chain.Close)
	}
	return err
}

// keys opens the agent's key and names the account that is paid. The key itself in the place of its reference is
// refused, and not repeated in the error.
func (b *builder) keys(context.Context) error {
	var k keys.Config
	kind, rest, _ := strings.Cut(b.config.Agent.Key, ":")
	switch {
	case kind == "env" && rest != "":
		k.KeyEnv = rest
	case kind == "file" && rest != "":
		k.KeyFile = rest
	default: // it may be the key itself, so that it is not repeated
		return repute.Invalid("agent.key", "is no reference to a key", "env:NAME or file:PATH, or AGENT_PRIVATE_KEY")
	}
	var err error
	if b.signer, err = k.Open(b.log, "agent.key"); err != nil {
		return err
	}
	b.payTo = b.signer.Address()
	if text := b.config.Payments.Address; text != "" {
		b.payTo, err = repute.ParseAddress("payments.address", text)
	}
	return err
}

// facilitator is how payments are verified and settled: by others over HTTP, whose settlements the
// chain must show, or by a wallet of this process.
func (b *builder) facilitator(context.Context) error {
	p := &b.config.Payments
	b.local = func(id uint64) bool { return id == b.id.ChainID }
	switch {
	case len(p.Facilitators) > 0:
		// Each request in flight keeps its connection: the default keeps two and closes the others.
		to := &http.Transport{Proxy: http.ProxyFromEnvironment,
			MaxIdleConnsPerHost: max(2, b.config.Limits.Concurrency),
			IdleConnTimeout:     time.Minute}
		c, err := facilitator.NewClient(&http.Client{Transport: to}, 0, p.Facilitators...)
		if err != nil {
			return repute.Invalid("payments.facilitators", err.Error(), "base URLs")
		}
		b.payment = &x402.Confirmed{Facilitator: c, Verifier: &x402.Verifier{Chain: b.chain}, History: b.chain}
	case p.Settler != "":
		return b.wallet(p.Settler)
	}
	return nil
}

// openWallet opens the wallet of orchestrator.wallets, once.
func (b *builder) openWallet() (list []wallet.ChainConfig, err error) {
	if list, err = b.main.Wallets(); err != nil || b.sender != nil {
		return list, err
	}
	w, err := wallet.Open(b.db, wallet.Config{Chains: list, Registrar: b.main.Registrar(), Log: b.log})
	if err != nil {
		return nil, err
	}
	b.sender = w
	b.closers = append(b.closers, w.Close)
	b.out.work = append(b.out.work, w.Run)
	return list, nil
}

// wallet settles by a key of orchestrator.wallets. Payments are then settled on every chain on which the settler has a
// key, and not on the agent's alone.
func (b *builder) wallet(slug string) error {
	list, err := b.openWallet()
	if err != nil {
		return err
	}
	o := settlement.Options{Settler: slug, Tokens: map[uint64][]common.Address{}}
	for _, c := range list {
		if _, err := b.sender.Identity(c.ChainID, slug); errors.Is(err, repute.ErrNotFound) {
			continue
		} else if err != nil {
			return err
		}
		o.Chains, o.Tokens[c.ChainID] = append(o.Chains, c.ChainID), c.Tokens
	}
	if len(o.Chains) == 0 {
		return repute.Invalid("payments.settler", fmt.Sprintf("%.80q has no key in orchestrator.wallets", slug),
			"a slug of identities (--main-config, REPUTE_CONFIG)")
	}
	b.local = func(id uint64) bool { _, ok := o.Tokens[id]; return ok }
	b.payment, err = settlement.New(b.db, b.sender, o)
	return err
}

// runtime makes the router and checks the agent on the chain. Governor, validations and answers are made before the
// router, which takes them, and their background work is noted for the process. Start comes last: it fails where the
// key is neither the owner's nor the wallet's.
func (b *builder) runtime(ctx context.Context) error {
	services, err := b.services(ctx)
	if err != nil {
		return err
	}
	if b.config.Agent.Indexer != "" {
		if b.scores, err = reputation.New(b.config.Agent.Indexer, b.id); err != nil {
			return fmt.Errorf("agent.indexer (INDEXER_URL): %w", err)
		}
	}
	a, wallets := b.config, &x402.Verifier{Chain: b.chain}
	o := agent.Options{ID: b.id, Version: a.Profile.Version, Signer: b.signer, Wallets: wallets, Services: services,
		Concurrency: a.Limits.Concurrency, Degraded: a.Limits.Degraded, Registry: b.registry, Tracer: b.tracer,
		Log: b.log,
		Payments: agent.Payments{Facilitator: b.payment, Address: b.payTo, Promises: a.Payments.Promises,
			RequireID: a.Payments.RequireID}}
	if !a.Payments.NoOffers {
		o.Payments.Signer = b.signer
	}
	if o.Governor, err = b.governor(ctx, wallets); err != nil {
		return err
	}
	requests, err := b.validations(&o)
	if err != nil {
		return err
	}
	reader, err := b.main.Resolver(b.log)
	if err != nil {
		return err
	}
	b.closers = append(b.closers, reader.Close)
	answers, err := b.answers(reader)
	if err != nil {
		return err
	}
	if b.out.router, err = agent.NewRouter(b.db, o); err != nil {
		return err
	}
	b.out.upkeep = &agent.Upkeep{Router: b.out.router, Registry: b.chain, Resolver: documents{reader},
		MetadataURI: a.Agent.MetadataURI, Days: a.Receipts.Days}
	if b.scores != nil {
		b.out.upkeep.Reputation = b.scores
	}
	if err := agentdb.Keep(ctx, b.db, b.id.String(), a.Receipts.Days); err != nil {
		return err
	}
	if requests != nil {
		b.out.upkeep.Validations = append(b.out.upkeep.Validations, requests)
		b.out.work = append(b.out.work, requests.Run)
	}
	if answers != nil {
		b.out.upkeep.Validations = append(b.out.upkeep.Validations, answers)
		b.out.work = append(b.out.work, answers.Run)
	}
	return b.out.upkeep.Start(ctx)
}

// services are the capabilities with their handlers and prices. Who settles the scheme upto is asked once, and only
// where a capability has that scheme.
func (b *builder) services(ctx context.Context) (out []*agent.Service, err error) {
	p := &pricing{chain: b.id.ChainID, payTo: b.payTo, tokens: append(b.config.Payments.Tokens, usdc()...),
		promises: b.config.Payments.Promises, local: func(id uint64) bool { return b.payment != nil && b.local(id) }}
	for i := range b.config.Capabilities {
		if b.config.Capabilities[i].Scheme == capability.UpTo && p.settler == nil {
			if p.settler, err = settlers(ctx, b.payment); err != nil {
				return nil, err
			}
			b.accounts(p.settler)
		}
	}
	for i := range b.config.Capabilities {
		c := &b.config.Capabilities[i]
		s := &agent.Service{Repeatable: c.Repeatable}
		if s.Capability, err = capability.New(c.Definition); err != nil {
			return nil, err
		}
		if s.Handler, err = b.work(c, &c.Handler, "handler"); err != nil {
			return nil, err
		}
		d := s.Definition()
		if s.Price, err = p.price(&d, c.ChargeFrom); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// accounts tells the confirmation of settlements who settles payments of the scheme upto.
func (b *builder) accounts(settlers map[string]common.Address) {
	if c, ok := b.payment.(*x402.Confirmed); ok {
		c.Verifier.Accounts = func(id uint64) []common.Address { return []common.Address{settlers[x402.Network(id)]} }
	}
}

// policyEvery is how often the policy is read again.
const policyEvery = time.Minute

// governor reads the policy; everything is allowed without one. The policy is read once before the agent is served, so
// that an agent never starts with a policy that does not hold. With resume the standing of the earlier process is not
// recalled, and the log says who decided that.
func (b *builder) governor(ctx context.Context, wallets *x402.Verifier) (agent.Governor, error) {
	uri := b.config.Policy.URI
	if uri == "" {
		b.log.Warn("the agent has no policy (policy.uri, AGENT_POLICY_URI): everything is allowed")
		return agent.Open{}, nil
	}
	var source governance.Source = governance.FileSource(filepath.Clean(uri))
	if strings.Contains(uri, "://") {
		var err error
		client := resolver.NewGuard(resolver.GuardOptions{AllowHosts: b.main.AllowHosts}).Client(30 * time.Second)
		if source, err = governance.NewURLSource(uri, client); err != nil {
			return nil, err
		}
	} else if _, err := os.Stat(uri); err != nil {
		return nil, repute.Invalid("policy.uri", err.Error(), "a file or an https URL (AGENT_POLICY_URI)")
	}
	loader, err := governance.NewLoader(governance.LoaderOptions{Source: source, AgentID: b.id.TokenID.Dec(),
		AllowUnsigned: b.config.Policy.Unsigned, Verifier: policyVerifier{b.id, b.chain, wallets},
		History: policies{b.db, b.id.String()}})
	if err != nil {
		return nil, err
	}
	if err := agentdb.Maintain(ctx, b.db, b.config.Receipts.Days); err != nil { // the log remembers policies
		return nil, err
	}
	if _, err := loader.Load(ctx); err != nil {
		return nil, err
	}
	if p := loader.Current(); p.Signed && p.Policy.File().IssuedAt == nil {
		b.log.Warn("the policy has no issuedAt, so that its server can bring back an older one that the owner signed")
	}
	if b.scores == nil && loader.Current().Policy.ReadsClientScore() {
		b.log.Warn("the policy reads the scores of clients, and there is no index (agent.indexer, INDEXER_URL)")
	}
	b.out.work = append(b.out.work,
		func(ctx context.Context) error { loader.Watch(ctx, policyEvery, b.log); return nil })
	g := &governor{loader: loader, db: b.db, id: b.id, scores: b.scores, log: b.log}
	if !b.resume {
		return g, g.recall(ctx)
	}
	return g, agentdb.Add(ctx, b.db, agentdb.Entry{Kind: agentdb.Event, Agent: b.id.String(), Outcome: "mode normal",
		Detail: []byte(`{"reason":"resumed by the operator"}`)})
}
