package agents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent"
	"repute/agent/governance"
	"repute/agent/validation"
	"repute/resolver"
)

// validations are the requests to the configured validator, nil for none. It tells the router which validator to name
// in answers. The sender pays for the request on the chain, and needs a key there.
func (b *builder) validations(o *agent.Options) (*validation.Requests, error) {
	c := &b.config.Validation
	if c.Validator == "" {
		return nil, nil
	}
	validator, err := repute.ParseAddress("validation.validator", c.Validator)
	if err != nil {
		return nil, err
	}
	registry, err := b.validationRegistry()
	if err != nil {
		return nil, err
	}
	if _, err := b.openWallet(); err != nil {
		return nil, err
	}
	if _, err := b.sender.Identity(b.id.ChainID, c.Sender); err != nil {
		return nil, repute.Invalid("validation.sender",
			fmt.Sprintf("%.80q has no key on chain %d in orchestrator.wallets",
				c.Sender, b.id.ChainID), "a slug of identities (--main-config, REPUTE_CONFIG)")
	}
	judge, ok := o.Governor.(validation.Judge)
	if !ok {
		return nil, repute.Invalid("validation.validator", "is never asked without a policy",
			"policy.uri (AGENT_POLICY_URI)")
	}
	o.Validator = validator
	return validation.New(validation.Options{DB: b.db, ID: b.id, Registry: registry, Validator: validator,
		Sender: b.sender,
		Slug:   c.Sender, Judge: judge, Log: b.log}), nil
}

// answers are the requests that name the agent as validator; nil where it answers none. Every capability with validates
// answers requests that name it. WatchValidator is set before the background work begins, so that no request is missed.
func (b *builder) answers(client *resolver.Client) (*validation.Answers, error) {
	c := &b.config.Validation
	if c.Answerer == "" {
		return nil, nil
	}
	if _, err := b.openWallet(); err != nil {
		return nil, err
	}
	by, err := b.sender.Identity(b.id.ChainID, c.Answerer)
	if err != nil {
		return nil, repute.Invalid("validation.answerer",
			fmt.Sprintf("%.80q has no key on chain %d in orchestrator.wallets",
				c.Answerer, b.id.ChainID), "a slug of identities (--main-config, REPUTE_CONFIG)")
	}
	if len(b.chain.Validations()) == 0 {
		return nil, repute.Invalid("validation.answerer", "answers in no registry", "addresses in agent.validations")
	}
	handlers := map[string]validation.Handler{}
	for i := range b.config.Capabilities {
		if c := &b.config.Capabilities[i]; c.Validates != nil {
			if handlers[c.Name], err = b.work(c, c.Validates, "validates"); err != nil {
				return nil, err
			}
		}
	}
	b.chain.WatchValidator(by)
	return validation.NewAnswers(validation.AnswerOptions{DB: b.db, ID: b.id, Registries: b.chain.Validations(),
		Validator: by, Sender: b.sender, Slug: c.Answerer, Handlers: handlers, Daily: c.Daily,
		Documents: documents{client},
		Chain:     b.chain, Log: b.log}), nil
}

// documents reads documents as the index does.
type documents struct{ *resolver.Client }

// Read implements validation.Documents.
func (d documents) Read(ctx context.Context, uri string) ([]byte, error) {
	doc, err := d.Fetch(ctx, uri)
	return doc.Bytes, err
}

// Resolves implements agent.Resolver.
func (d documents) Resolves(ctx context.Context, uri string) error {
	_, err := d.Fetch(ctx, uri)
	return err
}

// validationRegistry is the contract that validators are asked in. Its answers are watched only where it
// is one of the agent's.
func (b *builder) validationRegistry() (common.Address, error) {
	const field = "validation.registry"
	watched := b.chain.Validations()
	if b.config.Validation.Registry == "" && len(watched) > 0 {
		return watched[0], nil
	}
	at, err := repute.ParseAddress(field, b.config.Validation.Registry)
	if err != nil {
		return at, err
	}
	if !slices.Contains(watched, at) {
		return at, repute.Invalid(field, "is none of agent.validations", "one whose answers are watched")
	}
	return at, nil
}

// Validator implements validation.Judge: the lower bound of the validator's score must reach what the policy asks for.
// reason says why the answer of a validator does not count, and err that this cannot be known now.
func (g *governor) Validator(ctx context.Context, who common.Address) (counts bool, reason string, err error) {
	p := g.loader.Current().Policy
	if p == nil {
		return false, "", fmt.Errorf("the agent has no policy: %w", repute.ErrUnavailable)
	}
	var s governance.Score
	if p.File().Rules.Validation.ValidatorMinReputation != nil {
		if g.scores == nil {
			return false, "there is no index that knows the validator's score (agent.indexer)", nil
		}
		now, err := g.scores.Of(ctx, who)
		if err != nil {
			return false, "", errors.Join(err, repute.ErrUnavailable)
		}
		s = scoreOf(&now)
	}
	d := p.Validator(s)
	if d.Effect == governance.Deny {
		return false, d.Reasons[0].Text, nil
	}
	return true, "", nil
}
