package operate

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/contracts/bindings"
	"repute/orchestrator/wallet"
	"repute/store/rundb"
)

// Bounds of feedback.
const (
	maxDecimals = 18
	maxText     = 2048 // bytes of each text
)

// PostFeedback gives feedback onchain, signed by a configured key.
//
// The rater is the agent whose configured key has the address. The key is looked up before the chain is asked, so
// that an address of nobody costs no request. Feedback cannot be changed afterwards, only revoked.
func (o *Operator) PostFeedback(ctx context.Context, f FeedbackRequest, h How) (Act, error) {
	if act, known, err := o.asked(ctx, kindFeedback, f, h); known || err != nil {
		return act, err
	}
	from, err := addressOf("fromAddress", f.FromAddress)
	if err != nil {
		return Act{}, err
	}
	slug, err := o.wallet.IdentityOf(o.o.TrustChain, from)
	if errors.Is(err, repute.ErrNotFound) {
		return Act{}, repute.Invalid("fromAddress", fmt.Sprintf("no key of %s is configured on chain %d", from,
			o.o.TrustChain), "the address of a key in orchestrator.wallets[].identities")
	}
	if err != nil {
		return Act{}, err
	}
	registries, _, err := o.wallet.Contracts(o.o.TrustChain)
	if err != nil {
		return Act{}, err
	}
	token, err := f.agent(o.o.TrustChain, registries.Identity)
	if err != nil {
		return Act{}, err
	}
	value, hash, err := f.check()
	if err != nil {
		return Act{}, err
	}
	if err := o.mayRate(ctx, slug, from, token); err != nil {
		return Act{}, err
	}
	data := bindings.NewReputationRegistry().PackGiveFeedback(token, value, f.ValueDecimals, f.Tag1, f.Tag2, f.Endpoint,
		f.FeedbackURI, hash)
	j := &job{kind: kindFeedback, chain: o.o.TrustChain, agent: slug, request: f,
		steps: []step{o.write("feedback for agent "+token.String(), registries.Reputation, data)}}
	return o.perform(ctx, j, h)
}

// mayRate refuses feedback for an agent that the rater, or an address that controls the rater,
// controls according to the chain: the registry itself only checks the owner.
//
// Addresses of the rater are its own and, where it is registered on the trust chain, those that control its
// registration: two agents of one owner cannot rate each other by it. It is a check at the time of the request, and a
// transfer afterwards is not seen.
func (o *Operator) mayRate(ctx context.Context, slug string, from common.Address, token *big.Int) error {
	subject, err := o.controllers(ctx, token)
	if errors.Is(err, repute.ErrInvalid) {
		return nil // there is no such agent: the registry refuses the feedback
	}
	if err != nil {
		return err
	}
	own := []common.Address{from}
	m, err := rundb.Module(ctx, o.db, slug)
	if err == nil && m.Agent != nil && m.Agent.ChainID == o.o.TrustChain {
		var more []common.Address
		more, err = o.controllers(ctx, m.Agent.TokenID.ToBig())
		own = append(own, more...)
	}
	if err != nil && !errors.Is(err, repute.ErrNotFound) && !errors.Is(err, repute.ErrInvalid) {
		return err
	}
	for _, a := range own {
		if slices.Contains(subject, a) {
			return repute.Invalid("fromAddress",
				fmt.Sprintf("agent %s is controlled by %s, as the rater is: nobody rates an agent of its own",
					token, a),
				"a rater that neither owns the agent nor is its wallet or approved for it")
		}
	}
	return nil
}

// controllers returns the addresses that control an agent or are paid for it. repute.ErrInvalid: there is
// no such agent.
func (o *Operator) controllers(ctx context.Context, token *big.Int) (out []common.Address, err error) {
	at, b := o.identityRegistry(), bindings.NewIdentityRegistry()
	seen, err := o.wallet.Look(ctx, o.o.TrustChain, at, wallet.View{To: at, Data: b.PackOwnerOf(token)},
		wallet.View{To: at, Data: b.PackGetAgentWallet(token)}, wallet.View{To: at, Data: b.PackGetApproved(token)})
	if err != nil {
		return nil, err
	}
	// An answer that is no address of 32 bytes is read by its last 20, and an empty one is the zero address, which is
	// left out: nothing here depends on a contract that answers in another form.
	for _, answer := range seen.Answers {
		if a := common.BytesToAddress(answer); (a != common.Address{}) {
			out = append(out, a)
		}
	}
	return out, nil
}

// agent returns the token id of the rated agent.
func (f *FeedbackRequest) agent(chain uint64, registry common.Address) (*big.Int, error) {
	ref, err := repute.ParseAgentRef(f.AgentID)
	if err != nil {
		return nil, repute.Invalid("agentId", fmt.Sprintf("%.80q is no id of an agent", f.AgentID),
			"token id, chain:id or eip155:chain:registry:id")
	}
	if ref.ChainID != 0 && ref.ChainID != chain || ref.Registry != nil && *ref.Registry != registry {
		return nil, repute.Invalid("agentId", fmt.Sprintf("%.80q is not in the registry of chain %d", f.AgentID, chain),
			"an agent of the trust chain")
	}
	return ref.TokenID.ToBig(), nil
}

// check refuses feedback that the registry would reject.
func (f *FeedbackRequest) check() (value *big.Int, hash common.Hash, err error) {
	// The text is cut before it is parsed, because parsing decimal digits costs more than linear time in their
	// number. What is cut is refused below by its length.
	value, ok := new(big.Int).SetString(f.Value[:min(len(f.Value), 41)], 10)
	limit := new(big.Int).Lsh(big.NewInt(1), 127)
	switch {
	case !ok || len(f.Value) > 40 || new(big.Int).Abs(value).Cmp(limit) >= 0:
		return nil, hash, repute.Invalid("value", fmt.Sprintf("%.40q is no signed 128-bit number", f.Value),
			"decimal digits, with valueDecimals for the point")
	case f.ValueDecimals > maxDecimals:
		return nil, hash, repute.Invalid("valueDecimals", fmt.Sprintf("is %d", f.ValueDecimals), "0 to 18")
	}
	for _, t := range []struct{ name, text string }{{"tag1", f.Tag1}, {"tag2", f.Tag2}, {"endpoint", f.Endpoint},
		{"feedbackURI", f.FeedbackURI}} {
		if len(t.text) > maxText {
			return nil, hash, repute.Invalid(t.name, fmt.Sprintf("has %d bytes", len(t.text)),
				fmt.Sprintf("at most %d", maxText))
		}
	}
	raw, err := dataOf("feedbackHash", f.FeedbackHash)
	if err != nil || len(raw) != 0 && len(raw) != len(hash) {
		return nil, hash, repute.Invalid("feedbackHash", "is no hash", "0x and 64 hex digits, or absent")
	}
	return value, common.BytesToHash(raw), nil
}
