package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/api/answers"
	"repute/api/attestation"
	"repute/api/wire"
	"repute/store/batchdb"
	"repute/store/query"
	"repute/store/searchdb"
	"repute/x402"
)

// attestationInput is a question of a trust gate, with the origin that it was sent to.
type attestationInput struct {
	attestation.Query
	origin string
}

// Resolve reads the origin of the request besides the query. The package huma calls it.
func (in *attestationInput) Resolve(ctx huma.Context) []error {
	in.origin = "http://" + ctx.Host()
	if ctx.TLS() != nil {
		in.origin = "https://" + ctx.Host()
	}
	return in.Query.Resolve(ctx)
}

// mountAttestation adds the evaluation of accounts for trust gates.
func (a *API) mountAttestation() {
	get(a, "/v1/attestation", "get-attestation",
		"Evaluates an account for the trust gate of a payment, in the form that gates of x402 read", a.attestation)
}

// attestation serves GET /v1/attestation. The answer is uncertain wherever something is not known.
func (a *API) attestation(ctx context.Context, in *attestationInput) (*output[attestation.Evaluation], error) {
	demand, err := in.Demand()
	if err != nil {
		return nil, err
	}
	if err := a.CheckDemand(demand); err != nil {
		return nil, err
	}
	issuer := attestation.Issuer{URL: cmp.Or(a.publicURL, in.origin), Signs: a.Signer != nil, Now: time.Now()}
	s, err := parseSubject(in.Subject, in.Network)
	if err != nil {
		return nil, err
	}
	without := func(code string) (*output[attestation.Evaluation], error) {
		return ok(issuer.Without(&in.Query, s.network, code)), nil
	}
	if s.isForeign {
		return without(attestation.UnsupportedChain)
	}
	chains, err := query.Chains(ctx, a.DB)
	if err != nil {
		return nil, err
	}
	if s.chain != 0 {
		chains = slices.DeleteFunc(chains, func(c repute.ChainStatus) bool { return c.Chain.ID != s.chain })
		if len(chains) == 0 {
			return without(attestation.UnsupportedChain)
		}
	}
	items, err := a.itemsOf(ctx, s)
	switch {
	case err != nil:
		return nil, err
	case len(items) == 0:
		return without(attestation.UnknownSubject)
	case len(items) > attestation.MaxAgents:
		return without(attestation.TooManyAgents)
	case slices.ContainsFunc(chains, func(c repute.ChainStatus) bool { return !attestation.IsCurrent(c) }):
		return without(attestation.StaleIndex)
	}
	judged, err := a.judge(ctx, items, demand)
	if err != nil {
		return nil, err
	}
	if judged == nil {
		return without(attestation.UnknownSubject)
	}
	return ok(issuer.Evaluate(&in.Query, s.network, judged)), nil
}

// subject is the account or the agent that an evaluation is about.
type subject struct {
	account   *common.Address  // nil for an agent
	agent     *repute.AgentRef // nil for an account
	chain     uint64           // 0 for all
	network   *string          // the chain by CAIP-2, nil for all
	isForeign bool             // the network is no chain of the EVM that is known by this name
}

// networkLetters are what names of networks consist of, by CAIP-2.
const networkLetters = "-_:0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

// parseSubject reads an account, alone or by CAIP-10, or the id of an agent, and the network, which is "" for any.
// repute.ErrInvalid names the wrong parameter.
func parseSubject(text, network string) (s subject, err error) {
	if len(network) > 60 || strings.Trim(network, networkLetters) != "" {
		return s, repute.Invalid("network", "not a network", "eip155:8453, or a name that x402 has, such as base")
	}
	if network != "" {
		if s.chain, err = x402.ChainOf(network); err != nil {
			return subject{network: &network, isForeign: true}, nil
		}
	}
	account := text
	if parts := strings.Split(text, ":"); len(parts) == 3 && parts[0] == "eip155" { // CAIP-10
		account = parts[2]
		if err := s.on(parts[1]); err != nil {
			return s, err
		}
		if !strings.HasPrefix(account, "0x") {
			return s, wrongSubject()
		}
	}
	if strings.HasPrefix(account, "0x") {
		address, err := repute.ParseAddress("subject", account)
		if err == nil && address == (common.Address{}) {
			err = repute.Invalid("subject", "the zero address is nobody's account", "the address of an account")
		}
		s.account = &address
		return s.named(), err
	}
	ref, err := repute.ParseAgentRef(text)
	var input *repute.InputError
	switch {
	case strings.Count(text, ":") == 3 && errors.As(err, &input): // says which part is wrong, such as a checksum
		return s, repute.Invalid("subject", input.Reason, input.Hint)
	case err != nil:
		return s, wrongSubject()
	}
	if ref.ChainID != 0 {
		if err := s.on(strconv.FormatUint(ref.ChainID, 10)); err != nil {
			return s, err
		}
	}
	ref.ChainID, s.agent = s.chain, &ref
	return s.named(), nil
}

// wrongSubject refuses what names nobody.
func wrongSubject() error {
	return repute.Invalid("subject", "neither an account nor an agent",
		"0x and 40 hex digits, eip155:8453:0x…, or the id of an agent such as 8453:22")
}

// on sets the chain that the subject names, which must be that of the network.
func (s *subject) on(chain string) error {
	id, err := repute.ParseChainID(chain)
	if err != nil {
		return wrongSubject()
	}
	if s.chain != 0 && s.chain != id {
		return repute.Invalid("subject", "names another chain than network", "name one chain")
	}
	s.chain = id
	return nil
}

// named returns the subject with the name of its network.
func (s subject) named() subject {
	if s.chain != 0 {
		s.network = wire.OrNull(x402.Network(s.chain))
	}
	return s
}

// itemsOf returns the agents of a subject: the agent itself, or those that have the account as their verified wallet.
// An agent's wallet is verified by a signature of the account. Agents that it only owns are left out, because anybody
// can transfer a bad agent to an account. Of more than attestation.MaxAgents it returns one more.
func (a *API) itemsOf(ctx context.Context, s subject) (items []batchdb.Item, err error) {
	if s.agent != nil {
		return []batchdb.Item{{ID: s.agent}}, nil
	}
	f := searchdb.AgentFilter{Wallet: s.account, Limit: attestation.MaxAgents + 1}
	if s.chain != 0 {
		f.ChainIDs = []uint64{s.chain}
	}
	found, err := searchdb.Agents(ctx, a.DB, f)
	for _, agent := range found.Items {
		items = append(items, batchdb.Item{ID: &repute.AgentRef{ChainID: agent.ID.ChainID, Registry: &agent.ID.Registry,
			TokenID: agent.ID.TokenID}})
	}
	return items, err
}

// judge decides on agents by their newest scores, from one snapshot; nil where one of them is not indexed.
func (a *API) judge(ctx context.Context, items []batchdb.Item,
	demand answers.Demand) (out []attestation.Judged, err error) {
	b, err := batchdb.Read(ctx, a.DB, items, a.DefaultChain())
	if err != nil {
		return nil, err
	}
	for _, found := range b.Found {
		switch {
		case errors.Is(found.Err, repute.ErrNotFound):
			return nil, nil
		case errors.Is(found.Err, repute.ErrInvalid): // a bare id that could be of several chains
			return nil, repute.Invalid("subject", "names no chain, and several are indexed",
				"name it as 8453:22 does, or by network")
		case found.Err != nil:
			return nil, found.Err
		}
		id := found.Matches[0].Agent
		decision, err := a.Decide(b.Reputations[id].Score, demand)
		if err != nil {
			return nil, fmt.Errorf("decide on agent %s: %w", id.Short(), err)
		}
		out = append(out, attestation.Judged{Agent: wire.ID(id.String()), Decision: decision})
	}
	return out, nil
}
