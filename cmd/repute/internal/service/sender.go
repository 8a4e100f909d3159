package service

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/cmd/repute/internal/config"
	"repute/indexer"
	"repute/indexer/node"
	"repute/indexer/verify"
	"repute/orchestrator"
	"repute/orchestrator/operate"
	"repute/orchestrator/payer"
	"repute/orchestrator/safety"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/store"
	"repute/store/chaindb"
	"repute/x402"
)

// CheckSender refuses keys that cannot be read and agents that cannot be made of them. Where a chain is known to the
// database alone, the service does so when it has that. It opens the wallets without a database and sends nothing. It
// is for mistakes to be told before a database is started.
func CheckSender(ctx context.Context, c *config.Config) error {
	if !c.Has("orchestrator") || c.HasDatabase() && slices.ContainsFunc(c.Chains, config.ChainConfig.Open) {
		return nil
	}
	list, err := c.Wallets()
	if err != nil {
		return err
	}
	w, err := wallet.Open(nil, wallet.Config{Chains: list})
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = builtins(c, sender{registries: c.Registries(list)})
	return err
}

// treasuries returns the configured treasuries, whose events are indexed. A wallet without a treasury only writes to
// registries. The chain is followed from its start block, and from block 1 where that is not known.
func treasuries(c *config.Config, wallets []wallet.ChainConfig) (out []followedTreasury) {
	for i, w := range wallets {
		conf := &c.Orchestrator.Wallets[i]
		chain, _, err := c.ChainOf("", conf.Chain)
		if err != nil || (w.Treasury == common.Address{}) {
			continue
		}
		out = append(out, followedTreasury{chain, w.RPC, w.Treasury, max(chain.StartBlock, 1)})
	}
	return out
}

// watchPause is the pause before a treasury is added again that could not be added.
const watchPause = 5 * time.Second

// treasuryDepth is how many blocks below the head count as final, where the node names no final block, on a chain
// without an entry of its own.
const treasuryDepth = 64

// watch adds a treasury to the contracts whose events are indexed. The process with the role indexer that has the chain
// in its configuration indexes them; without one this process does, until ctx ends. A failure to add it is retried
// without end, because the database may be away at the start.
func (s *Service) watch(ctx context.Context, t followedTreasury) {
	for ctx.Err() == nil {
		err := chaindb.WatchTreasury(ctx, s.db, t.chain.ID, repute.WatchedContract{Address: t.at, From: t.from})
		if err == nil {
			break
		}
		s.log.Warn("treasury not watched", "chain", t.chain.ID, "treasury", t.at, "again", watchPause, "error", err)
		repute.Pause(ctx, watchPause)
	}
	if !s.indexes(t.chain.ID) {
		s.followTreasuries(ctx, t)
	}
}

// indexes reports whether this process indexes the registries of a chain.
func (s *Service) indexes(chainID uint64) bool {
	chains, err := s.Config.Followed()
	return err == nil && s.Config.Has("indexer") &&
		slices.ContainsFunc(chains, func(c config.Followed) bool { return c.ID == chainID })
}

// followTreasuries indexes the treasuries of a chain without registries until ctx ends. It stands by while another
// process does so, or indexes the chain with registries.
func (s *Service) followTreasuries(ctx context.Context, t followedTreasury) {
	pool, err := s.runningPool(ctx, t.chain.ID, t.rpc)
	if err != nil {
		s.log.Error("treasury not followed", "chain", t.chain.ID, "error", err)
		return
	}
	chain := repute.Chain{ID: t.chain.ID, StartBlock: t.from}
	f := indexer.NewFollower(s.db, chain, pool, indexer.Options{TTL: s.Config.Lease, Depth: treasuryDepth,
		Metrics: s.metrics, Log: s.log,
		Verifier: verify.New(s.db, chain, pool.Nodes,
			verify.Options{HistoryOnly: true, Metrics: s.verified, Log: s.log})})
	if err := f.Run(ctx); err != nil {
		s.log.Error("treasury no longer followed", "chain", t.chain.ID, "error", err)
	}
}

// sender has what the orchestrator needs to send transactions: keys, chains and addresses. Without wallets in the
// configuration, wallet and operator are nil, and whatever would send is refused; a process without the role
// orchestrator has the zero sender.
type sender struct {
	wallet     *wallet.Wallet    // nil: none is configured
	operator   *operate.Operator // of acts outside any run; nil without a wallet
	trust      uint64            // id of the chain of identities
	execution  uint64            // id of the chain of the treasury that agents spend from
	registries []safety.Registries
	treasuries []followedTreasury
	tokens     []repute.Stablecoin // that approvals name amounts of
}

// followedTreasury is a treasury whose events are indexed.
type followedTreasury struct {
	chain repute.Chain
	rpc   []string
	at    common.Address
	from  uint64
}

// openSender reads the keys of the configured wallets, whose pools run until ctx ends. Without wallets
// nothing is sent.
func (s *Service) openSender(ctx context.Context) (h sender, err error) {
	list, err := s.Config.Wallets()
	if err != nil {
		return h, err
	}
	h.trust, h.execution = s.Config.TwoChains(list)
	h.registries = s.Config.Registries(list)
	h.treasuries = treasuries(&s.Config, list)
	if h.tokens, err = s.Config.Tokens(list); err != nil || len(list) == 0 {
		return h, err
	}
	if h.wallet, err = wallet.Open(s.db, wallet.Config{Chains: list, Registrar: s.Config.Registrar(), Log: s.log,
		Pool: func(chainID uint64, urls []string) (*node.Pool, error) { return s.runningPool(ctx, chainID, urls) },
	}); err != nil {
		return h, err
	}
	c := &s.Config.Orchestrator
	h.operator = operate.New(s.db, h.wallet, operate.Options{Policy: c.PolicyNow, Lenient: c.Development,
		TrustChain: h.trust, ExecutionChain: h.execution,
		PublicURL: c.PublicURL, Log: s.log})
	return h, nil
}

// run follows transactions and operator actions that were begun, until ctx ends. It returns when both the wallet and
// the operator, which uses it, have ended, with the error of the wallet.
func (h *sender) run(ctx context.Context) error {
	if h.wallet == nil {
		return nil
	}
	ended := make(chan error, 1)
	go func() { ended <- h.operator.Run(ctx) }()
	err := h.wallet.Run(ctx)
	<-ended
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// keys returns the function that names the address with which a built-in agent signs on a
// chain; nil without a wallet.
func (h *sender) keys() func(uint64, string) (common.Address, error) {
	if h.wallet == nil {
		return nil
	}
	return h.wallet.Identity
}

// payer pays for answers with the keys of the wallet, by the tokens that are known; nil without one. The caps are those
// of each run's policy.
func (h *sender) payer(db *store.DB, client *http.Client, log *slog.Logger) orchestrator.Payer {
	if h.wallet == nil {
		return nil
	}
	return payer.ForRuns(db, payer.RunOptions{HTTP: client, Coins: h.tokens, Log: log,
		Keys: func(chainID uint64, slug string) (x402.Signer, error) { return h.wallet.IdentityKey(chainID, slug) }})
}

// close closes the connections of the wallet.
func (h *sender) close() {
	if h.wallet != nil {
		h.wallet.Close()
	}
}

// chain returns the wallet as runs see it; nil without one.
func (h *sender) chain() transaction.Chain {
	if h.wallet == nil {
		return nil
	}
	return h.wallet
}

// names returns the configured names of an address of a chain: treasury, operator of the treasury, wallet of an agent.
// An address may have several names. They are shown to a person who approves a transaction, so that an address that
// belongs to this service is recognized.
func (h sender) names(chainID uint64, a common.Address) (out []string) {
	if h.wallet == nil {
		return nil
	}
	if _, treasury, err := h.wallet.Contracts(chainID); err == nil && a == treasury && a != (common.Address{}) {
		out = append(out, "treasury")
	}
	if operator, err := h.wallet.Operator(chainID); err == nil && a == operator {
		out = append(out, "operator of the treasury")
	}
	if slug, err := h.wallet.IdentityOf(chainID, a); err == nil && slug != "" {
		out = append(out, "wallet of agent "+slug)
	}
	return out
}
