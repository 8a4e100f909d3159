package operate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/contracts/bindings"
	"repute/orchestrator/transaction"
	"repute/orchestrator/wallet"
	"repute/store/rundb"
	"repute/store/walletdb"
)

// consent is a pending signature by which a wallet agrees to be the wallet of an agent.
type consent struct {
	Wallet common.Address `json:"wallet"`
	Owner  common.Address `json:"owner"`
	Token  string         `json:"token,omitempty"` // empty: the token that the first step registers
}

// consentSeconds is the validity of a signature that is made here; the registry allows five
// minutes.
const consentSeconds = 240

// RegisterIdentity registers an agent that has no identity yet, or brings file and wallet
// of its registration up to date. The agent's own key signs.
//
// A registration with a wallet other than the owner's takes two transactions, because the consent of the wallet is
// signed over the token id, which only the first one reveals. A crash between the two leaves a registered agent
// without its wallet, and the act open: Run sends the second.
func (o *Operator) RegisterIdentity(ctx context.Context, r Identity, h How) (Act, error) {
	if act, known, err := o.asked(ctx, kindIdentity, r, h); known || err != nil {
		return act, err
	}
	m, owner, err := o.keyed(ctx, "slug", r.Slug)
	if err != nil {
		return Act{}, err
	}
	if r.OwnerWallet != "" {
		wanted, err := addressOf("ownerWallet", r.OwnerWallet)
		if err != nil {
			return Act{}, err
		}
		if wanted != owner {
			return Act{}, repute.Invalid("ownerWallet",
				fmt.Sprintf("is %s, but the key of agent %s is that of %s", wanted,
					r.Slug, owner), "the address of the configured key")
		}
	}
	uri := r.AgentURI
	if uri == "" && o.o.PublicURL != "" {
		uri = o.o.PublicURL + "/v1/agents/" + r.Slug + "/agent-registration.json"
	}
	if len(uri) > 2048 {
		return Act{}, repute.Invalid("agentURI", "is longer than 2048 bytes", "a shorter one")
	}
	serves := owner
	if r.OperatorWallet != "" {
		if serves, err = addressOf("operatorWallet", r.OperatorWallet); err != nil {
			return Act{}, err
		}
	}
	j := &job{kind: kindIdentity, chain: o.o.TrustChain, agent: r.Slug, request: r}
	if m.Agent == nil || m.Agent.ChainID != o.o.TrustChain {
		if uri == "" {
			return Act{}, repute.Invalid("agentURI", "is missing",
				"the address of the registration file, or orchestrator.public_url")
		}
		o.register(j, uri, owner, serves)
		return o.perform(ctx, j, h)
	}
	if err := o.update(ctx, j, *m.Agent, uri, r.OperatorWallet != "", serves); err != nil {
		return Act{}, err
	}
	return o.perform(ctx, j, h)
}

// keyed returns an agent with the address of its key on the trust chain.
func (o *Operator) keyed(ctx context.Context, field, slug string) (m repute.Module, key common.Address, err error) {
	if err := slugOf(field, slug); err != nil {
		return m, key, err
	}
	if m, err = rundb.Module(ctx, o.db, slug); err != nil {
		return m, key, err
	}
	key, err = o.wallet.Identity(o.o.TrustChain, slug)
	if errors.Is(err, repute.ErrNotFound) {
		err = repute.Invalid(field, fmt.Sprintf("agent %s has no key on chain %d", slug, o.o.TrustChain),
			"configure orchestrator.wallets[].identities."+slug)
	}
	return m, key, err
}

// write returns a step that calls a registry on the trust chain.
func (o *Operator) write(purpose string, to common.Address, data []byte) step {
	return step{Purpose: purpose, Tx: transaction.Tx{ChainID: o.o.TrustChain, Target: to, Data: data, Purpose: purpose}}
}

// identityRegistry returns the Identity Registry of the trust chain.
func (o *Operator) identityRegistry() common.Address {
	r, _, err := o.wallet.Contracts(o.o.TrustChain)
	if err != nil {
		return common.Address{} // the wallet refuses to send there, with a reason
	}
	return r.Identity
}

// register adds the transactions that register an agent.
// The second step has no data yet: consented makes it once the first one is confirmed.
func (o *Operator) register(j *job, uri string, owner, serves common.Address) {
	at := o.identityRegistry()
	j.steps = append(j.steps, o.write("register "+j.agent, at, bindings.NewIdentityRegistry().PackRegisterURI(uri)))
	if serves != owner {
		s := o.write("wallet of "+j.agent, at, nil)
		s.Consent = &consent{Wallet: serves, Owner: owner}
		j.steps = append(j.steps, s)
	}
}

// update adds the transactions for the values that differ from the chain. repute.ErrConflict if none does: an act
// without a transaction would say that something was done.
// walletNamed tells a wallet that the request names from the default one: without it the wallet of the chain stays,
// whatever it is.
func (o *Operator) update(ctx context.Context, j *job, id repute.AgentID, uri string, walletNamed bool,
	serves common.Address) error {
	at, b := o.identityRegistry(), bindings.NewIdentityRegistry()
	token := id.TokenID.ToBig()
	seen, err := o.wallet.Look(ctx, o.o.TrustChain, at, wallet.View{To: at, Data: b.PackTokenURI(token)},
		wallet.View{To: at, Data: b.PackGetAgentWallet(token)}, wallet.View{To: at, Data: b.PackOwnerOf(token)})
	if err != nil {
		return err
	}
	now, err1 := b.UnpackTokenURI(seen.Answers[0])
	has, err2 := b.UnpackGetAgentWallet(seen.Answers[1])
	owner, err3 := b.UnpackOwnerOf(seen.Answers[2])
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("registration of agent %s: %w: %w", id, err, repute.ErrUnavailable)
	}
	if uri != "" && uri != now {
		j.steps = append(j.steps, o.write("file of "+j.agent, at, b.PackSetAgentURI(token, uri)))
	}
	if walletNamed && has != serves {
		s := o.write("wallet of "+j.agent, at, nil)
		s.Consent = &consent{Wallet: serves, Owner: owner, Token: token.String()}
		j.steps = append(j.steps, s)
	}
	if len(j.steps) == 0 {
		return repute.Conflict("agent %s is registered as %s with this file and wallet: nothing would change",
			j.agent, id)
	}
	return nil
}

// SetAgentWallet sets another wallet of an agent. The wallet's signature is given by the caller or
// made by a configured key.
//
// The signature and its deadline are no part of the stored request. They differ between two attempts at the same
// thing, and a repeated idempotency key compares the stored request.
func (o *Operator) SetAgentWallet(ctx context.Context, r AgentWallet, h How) (Act, error) {
	if err := slugOf("slug", r.Slug); err != nil {
		return Act{}, err
	}
	to, err := addressOf("operatorWallet", r.OperatorWallet)
	if err != nil {
		return Act{}, err
	}
	request := AgentWallet{Slug: r.Slug, OperatorWallet: to.Hex()}
	if act, known, err := o.asked(ctx, kindWallet, request, h); known || err != nil {
		return act, err
	}
	m, _, err := o.keyed(ctx, "slug", r.Slug)
	if err != nil {
		return Act{}, err
	}
	if m.Agent == nil || m.Agent.ChainID != o.o.TrustChain {
		return Act{}, repute.Conflict("agent %s has no identity on chain %d: register it first", r.Slug, o.o.TrustChain)
	}
	signature, err := dataOf("signature", r.Signature)
	if err != nil {
		return Act{}, err
	}
	if (len(signature) == 0) != (r.Deadline == 0) {
		return Act{}, repute.Invalid("signature and deadline", "belong together",
			"both, or neither where the wallet's key is configured")
	}
	at, b, token := o.identityRegistry(), bindings.NewIdentityRegistry(), m.Agent.TokenID.ToBig()
	if len(signature) == 0 {
		if signature, r.Deadline, err = o.signed(ctx, to, token); err != nil {
			return Act{}, err
		}
	}
	j := &job{kind: kindWallet, chain: o.o.TrustChain, agent: r.Slug, request: request,
		steps: []step{o.write("wallet of "+r.Slug, at,
			b.PackSetAgentWallet(token, to, new(big.Int).SetUint64(r.Deadline),
				signature))}}
	return o.perform(ctx, j, h)
}

// signed makes the signature by which a configured key agrees to be an agent's wallet.
// The deadline counts from the time of the block that was read and not from this machine's clock, since the registry
// compares it with block time.
func (o *Operator) signed(ctx context.Context, to common.Address, token *big.Int) (signature []byte, deadline uint64,
	err error) {
	at, b := o.identityRegistry(), bindings.NewIdentityRegistry()
	seen, err := o.wallet.Look(ctx, o.o.TrustChain, at, wallet.View{To: at, Data: b.PackOwnerOf(token)})
	if err != nil {
		return nil, 0, err
	}
	owner, err := b.UnpackOwnerOf(seen.Answers[0])
	if err != nil {
		return nil, 0, fmt.Errorf("owner of agent %s: %w: %w", token, err, repute.ErrUnavailable)
	}
	deadline = seen.Time + consentSeconds
	signature, err = o.wallet.SignConsent(ctx, wallet.Consent{ChainID: o.o.TrustChain, Agent: token, Wallet: to,
		Owner: owner, Deadline: deadline})
	if errors.Is(err, repute.ErrNotFound) {
		err = repute.Invalid("operatorWallet", "its key is not configured",
			"give deadline and signature of that wallet")
	}
	return signature, deadline, err
}

// consented completes a step with the wallet's signature: the stored one, or a new one. A new one is valid for some
// minutes only and differs from the one before, so that the intent that a crash left behind MUST be sent with its
// own data. What it does is simulated here, as the step could not be simulated when the action was judged.
func (o *Operator) consented(ctx context.Context, intent *transaction.Intent, c *consent,
	before []transaction.Sent) error {
	stored, err := walletdb.ReadIntent(ctx, o.db, intent.ID)
	if err == nil {
		intent.Data = stored.Data
		return nil
	}
	if !errors.Is(err, repute.ErrNotFound) {
		return err
	}
	token, ok := new(big.Int).SetString(c.Token, 10)
	if !ok {
		if len(before) == 0 {
			return repute.Conflict("no agent was registered whose wallet could be set")
		}
		if token, err = registeredIn(o.identityRegistry(), before[0]); err != nil {
			return err
		}
	}
	signature, deadline, err := o.signed(ctx, c.Wallet, token)
	if err != nil {
		return err
	}
	intent.Data = bindings.NewIdentityRegistry().PackSetAgentWallet(token, c.Wallet, new(big.Int).SetUint64(deadline),
		signature)
	simulated, err := o.wallet.Simulate(ctx, intent.Origin, intent.Tx)
	if err != nil {
		return err
	}
	if !simulated.OK {
		return repute.Invalid("tx", "would fail: "+simulated.Reason, "a wallet that consents")
	}
	intent.MaxGasWei = simulated.FeeWei
	return nil
}

// registered stores the identity that a transaction registered for an agent. It is called again after a crash, and
// stores the same then.
// An update registers nothing, and keeps the identity that the agent has.
func (o *Operator) registered(ctx context.Context, row *walletdb.Act, s transaction.Sent) (outcome, error) {
	m, err := rundb.Module(ctx, o.db, row.Agent)
	if err != nil {
		return outcome{}, err
	}
	at := o.identityRegistry()
	token, err := registeredIn(at, s)
	if errors.Is(err, repute.ErrNotFound) && m.Agent != nil { // an update
		return outcome{AgentID: m.Agent.String()}, nil
	}
	if err != nil {
		return outcome{}, err
	}
	id := repute.AgentID{ChainID: row.ChainID, Registry: at}
	id.TokenID.SetFromBig(token)
	m.Agent = &id
	return outcome{AgentID: id.String()}, rundb.SaveModule(ctx, o.db, m)
}

// registeredIn returns the token that a transaction registered.
func registeredIn(registry common.Address, s transaction.Sent) (*big.Int, error) {
	var logs []*types.Log
	if err := json.Unmarshal(s.Result, &logs); err != nil {
		return nil, fmt.Errorf("logs of %s: %w", s.Hash, err)
	}
	for _, l := range logs {
		if e, err := bindings.NewIdentityRegistry().UnpackRegisteredEvent(l); err == nil && l.Address == registry {
			return e.AgentId, nil
		}
	}
	return nil, &repute.MissingError{What: fmt.Sprintf("registration in transaction %s", s.Hash), Why: "is not there"}
}
