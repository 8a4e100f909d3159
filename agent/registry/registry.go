package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/ethclient"
	"github.com/ethereum/go-ethereum/rpc"

	"repute"
	"repute/agent"
	"repute/contracts"
	"repute/x402"
)

// Options name the agent and its chain.
type Options struct {
	ID          repute.AgentID
	Reputation  common.Address   // zero: feedback is not watched
	Validations []common.Address // empty: requests are not watched
	RPC         []string
	Timeout     time.Duration // of one question, 10 s when 0
}

// Registry asks about one agent. It is safe for concurrent use.
type Registry struct {
	o     Options
	nodes []*ethclient.Client
	// validator is the account as which the agent validates work of others; zero for none.
	validator common.Address
	hosts     []string      // of the nodes, for errors: a path may contain a secret
	head      atomic.Uint64 // newest block that a majority of nodes had; see maxLag
}

// Open returns a registry. It makes no request. repute.ErrInvalid for a URL that is none.
func Open(o Options) (*Registry, error) {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	r := &Registry{o: o}
	for _, address := range o.RPC {
		c, err := rpc.DialOptions(context.Background(), address, rpc.WithHTTPClient(&http.Client{Timeout: o.Timeout}))
		if err != nil {
			r.Close()
			return nil, repute.Invalid("agent.rpc", "one is no URL of a node", "http or https URLs (RPC_URL)")
		}
		r.nodes = append(r.nodes, ethclient.NewClient(c))
		host := ""
		if u, err := url.Parse(address); err == nil {
			host = u.Host
		}
		r.hosts = append(r.hosts, host)
	}
	if len(r.nodes) == 0 {
		return nil, repute.Invalid("agent.rpc", "is empty", "a URL (RPC_URL)")
	}
	return r, nil
}

// Validations are the validation registries whose events are watched.
func (r *Registry) Validations() []common.Address { return r.o.Validations }

// WatchValidator has Events include requests that name an account as validator. It MUST be called before the
// first one.
func (r *Registry) WatchValidator(who common.Address) { r.validator = who }

// Close ends the connections.
func (r *Registry) Close() {
	for _, n := range r.nodes {
		n.Close()
	}
}

// ask asks the nodes in order until one answers. repute.ErrUnavailable where none does. What a
// contract refuses is an answer. The error names the hosts of the nodes without their paths, which may
// contain a secret.
func (r *Registry) ask(ctx context.Context, question func(context.Context, *ethclient.Client) error) error {
	var failed []string
	for i, n := range r.nodes {
		ctx, cancel := context.WithTimeout(ctx, r.o.Timeout)
		err := question(ctx, n)
		cancel()
		if err == nil || reverted(err) {
			return err
		}
		failed = append(failed, fmt.Sprintf("node %d of %d (%s) does not answer", i+1, len(r.nodes), r.hosts[i]))
	}
	err := fmt.Errorf("agent.rpc: %s: %w", strings.Join(failed, ", "), repute.ErrUnavailable)
	if r.o.ID.ChainID != 0 {
		return fmt.Errorf("chain %d: %w", r.o.ID.ChainID, err)
	}
	return err
}

// isOf returns repute.ErrUnavailable for another chain than the agent's, of which no node is known.
func (r *Registry) isOf(chainID uint64) error {
	if chainID != r.o.ID.ChainID {
		return fmt.Errorf("chain %d: %w", chainID, repute.ErrUnavailable)
	}
	return nil
}

// reverted reports whether a contract refused a call.
func reverted(err error) bool {
	var data rpc.DataError
	return errors.As(err, &data) && data.ErrorData() != nil ||
		err != nil && strings.Contains(err.Error(), "execution reverted")
}

// ChainID is the chain that the nodes are of.
func (r *Registry) ChainID(ctx context.Context) (id uint64, err error) {
	err = r.ask(ctx, func(ctx context.Context, n *ethclient.Client) error {
		answer, err := n.ChainID(ctx)
		if err == nil {
			id = answer.Uint64()
		}
		return err
	})
	return id, err
}

// Call implements x402.Chain.
func (r *Registry) Call(ctx context.Context, chainID uint64, from, to common.Address,
	data []byte) (out []byte, err error) {
	if err := r.isOf(chainID); err != nil {
		return nil, err
	}
	err = r.ask(ctx, func(ctx context.Context, n *ethclient.Client) error {
		out, err = n.CallContract(ctx, ethereum.CallMsg{From: from, To: &to, Data: data}, nil)
		return err
	})
	if reverted(err) {
		err = fmt.Errorf("%w: %w", x402.ErrReverted, repute.ErrInvalid)
	}
	return out, err
}

// Events implements agent.Registry. It returns the agent's events from block from on, of at most
// agent.EventBlocks blocks. next is the block to start at the next time. With from == 0 it returns no
// events, and next is the block after the newest one.
func (r *Registry) Events(ctx context.Context, from uint64) (out []repute.Record, next uint64, err error) {
	err = r.ask(ctx, func(ctx context.Context, n *ethclient.Client) error {
		out = nil
		head, err := n.BlockNumber(ctx)
		if err != nil || from == 0 || from > head {
			next = max(head+1, from)
			return err
		}
		to := min(head, from+agent.EventBlocks-1)
		for _, q := range r.queries(from, to) {
			logs, err := n.FilterLogs(ctx, q)
			if err != nil {
				return err
			}
			out = append(out, r.decode(logs)...)
		}
		next = to + 1
		return nil
	})
	slices.SortStableFunc(out, func(a, b repute.Record) int {
		return cmp.Or(cmp.Compare(a.Log.BlockNumber, b.Log.BlockNumber), cmp.Compare(a.Log.Index, b.Log.Index))
	})
	return out, next, err
}

// queries ask for the agent's events: its id is the first indexed argument of some and the second of
// others.
func (r *Registry) queries(from, to uint64) []ethereum.FilterQuery {
	b := r.o.ID.TokenID.Bytes32()
	id := []common.Hash{b}
	topic := func(signature string) []common.Hash { return []common.Hash{crypto.Keccak256Hash([]byte(signature))} }
	one := func(at []common.Address, topics ...[]common.Hash) ethereum.FilterQuery {
		return ethereum.FilterQuery{FromBlock: new(big.Int).SetUint64(from), ToBlock: new(big.Int).SetUint64(to),
			Addresses: at, Topics: topics}
	}
	out := []ethereum.FilterQuery{one([]common.Address{r.o.ID.Registry},
		topic("URIUpdated(uint256,string,address)"), id)}
	if (r.o.Reputation != common.Address{}) {
		ratings := append(topic("NewFeedback(uint256,address,uint64,int128,uint8,string,string,string,string,string,bytes32)"),
			topic("FeedbackRevoked(uint256,address,uint64)")...)
		out = append(out, one([]common.Address{r.o.Reputation}, ratings, id))
	}
	if len(r.o.Validations) > 0 {
		both := append(topic("ValidationRequest(address,uint256,string,bytes32)"),
			topic("ValidationResponse(address,uint256,bytes32,uint8,string,bytes32,string)")...)
		out = append(out, one(r.o.Validations, both, nil, id))
		if (r.validator != common.Address{}) {
			out = append(out, one(r.o.Validations, both[:1], []common.Hash{common.BytesToHash(r.validator[:])}))
		}
	}
	return out
}

// decode reads logs; those that are none of the registries' are left out.
func (r *Registry) decode(logs []types.Log) (out []repute.Record) {
	for _, l := range logs {
		if e, err := contracts.Decode(l); err == nil && !l.Removed {
			out = append(out, repute.Record{Log: l, Event: e})
		}
	}
	return out
}
