package compliance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/agent/governance"
	"repute/agent/signed"
)

// checkHeaders checks that every answer has X-Agent-ID, X-Agent-Signature and X-Agent-Version.
func (s *suite) checkHeaders(context.Context) (string, error) {
	if len(s.seen) == 0 {
		return "", skip("nothing was answered")
	}
	for _, a := range s.seen {
		for _, name := range []string{signed.HeaderAgentID, signed.HeaderSignature, signed.HeaderVersion} {
			if a.header.Get(name) == "" {
				return "", fmt.Errorf("%s, status %d: header %s is missing", a.what, a.status, name)
			}
		}
	}
	return fmt.Sprintf("on %d answers", len(s.seen)), nil
}

// skew is how much the clock of a runtime may differ.
// It is wide, so that neither a slow suite nor a clock without a time server fails a runtime.
const skew = 5 * time.Minute

// checkSignatures verifies every answer that has a signature. All are of one key, the owner's or the
// wallet's where the chain is known, and about the task that was asked.
//
// An error of the chain is not one of this check: without the chain it says only that all answers are of one key.
func (s *suite) checkSignatures(ctx context.Context) (string, error) {
	var signer common.Address
	n := 0
	for _, a := range s.seen {
		if a.header.Get(signed.HeaderSignature) == "" || a.header.Get(signed.HeaderAgentID) == "" {
			continue // the check of headers tells it
		}
		by, err := s.verify(a)
		if err != nil {
			return "", fmt.Errorf("%s, status %d: %w", a.what, a.status, err)
		}
		if n++; n > 1 && by != signer {
			return "", fmt.Errorf("%s is signed by %s, another answer by %s", a.what, by, signer)
		}
		signer = by
	}
	if n == 0 {
		return "", fmt.Errorf("no answer has a signature")
	}
	if r, err := s.chain(ctx); err == nil && signer != r.Owner && signer != r.Wallet {
		return "", fmt.Errorf("answers are signed by %s, the chain names owner %s and wallet %s", signer, r.Owner,
			r.Wallet)
	}
	return fmt.Sprintf("%d answers signed by %s", n, signer), nil
}

// verify checks one signature, its time and its agent, and returns whose it is.
//
// The first verified answer sets the domain, and all others MUST have the same: a runtime that signs for two
// registries proves nothing about either. A paid answer may be old, because a replay returns the stored one with its
// signature.
func (s *suite) verify(a *answer) (common.Address, error) {
	r, err := signed.ReadResponse(a.header)
	if err != nil {
		return common.Address{}, err
	}
	by, err := r.Verify(a.body)
	if err != nil {
		return by, err
	}
	// A time that no int64 can hold is cut to a year far in the future, which is refused below.
	at := time.Unix(int64(min(r.Timestamp, 1<<40)), 0)
	switch {
	case time.Since(at) > skew && a != s.settled || time.Until(at) > skew:
		return by, fmt.Errorf("the signed time is %s", at.UTC().Format(time.RFC3339))
	case s.state.AgentID != "" && r.AgentID.Dec() != s.state.AgentID:
		return by, fmt.Errorf("the answer is of agent %s, health says %.80s", r.AgentID.Dec(), s.state.AgentID)
	case s.domain == signed.Domain{}:
		s.domain = r.Domain
	case s.domain != r.Domain:
		return by, fmt.Errorf("the domain of the signature is another one than of the answers before")
	}
	return by, nil
}

// chain asks the registry once. The error is a skip where it cannot be asked.
//
// An agent that the registry does not know is an error and not remembered, so that every check that needs the chain
// reports it.
func (s *suite) chain(ctx context.Context) (*Registered, error) {
	if s.onChain != nil {
		return s.onChain, nil
	}
	if s.o.Chain == nil {
		return nil, skip("no node is given (--rpc, RPC_URL)")
	}
	id, err := repute.ParseTokenID(s.state.AgentID)
	if err != nil || (s.domain == signed.Domain{}) {
		return nil, skip("the agent's full id is not known: it is read from /health and signed answers")
	}
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	r, err := s.o.Chain.Agent(ctx, repute.AgentID{ChainID: s.domain.ChainID, Registry: s.domain.Registry, TokenID: id})
	switch {
	case errors.Is(err, repute.ErrNotFound), errors.Is(err, repute.ErrInvalid):
		return nil, err
	case err != nil:
		return nil, skip("the chain cannot be asked: " + err.Error())
	}
	s.onChain = &r
	return &r, nil
}

// checkRegistered: the chain knows the agent. It is asked by the full id, of which the signed answers give the
// chain and the registry, so that this check comes after that of the signatures.
func (s *suite) checkRegistered(ctx context.Context) (string, error) {
	r, err := s.chain(ctx)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s, owner %s", s.agent(), r.Owner), nil
}

// checkMetadata: the chain's URI resolves to a file of this agent, and is the configured one.
//
// The members of appendix A are not required here, because the URI may name a plain registration file of ERC-8004.
// checkRegistrationFile requires them of the file that the runtime serves.
func (s *suite) checkMetadata(ctx context.Context) (string, error) {
	r, err := s.chain(ctx)
	switch {
	case err != nil:
		return "", skip("it needs the chain: " + err.Error())
	case s.o.MetadataURI != "" && s.o.MetadataURI != r.URI:
		return "", fmt.Errorf("the chain has the URI %.200q, configured is %.200q", r.URI, s.o.MetadataURI)
	case s.o.Documents == nil:
		return "", skip("documents are not read")
	case r.URI == "":
		return "", errors.New("the agent has no URI onchain: call setAgentURI with the URL of the registration file")
	}
	raw, err := s.read(ctx, r.URI)
	if err != nil {
		return "", fmt.Errorf("metadata URI %.200q: %w", r.URI, err)
	}
	var body map[string]json.RawMessage
	if err := json.Unmarshal(raw, &body); err != nil || body["name"] == nil {
		return "", fmt.Errorf("the document of the metadata URI is no registration file: %.100s", raw)
	}
	return fmt.Sprintf("%.200s, %d bytes", r.URI, len(raw)), nil
}

// read reads a document within Timeout.
func (s *suite) read(ctx context.Context, uri string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, s.o.Timeout)
	defer cancel()
	return s.o.Documents.Read(ctx, uri)
}

// policyURI is the given one, or the one of the registration file.
func (s *suite) policyURI() string {
	if s.o.Policy != "" {
		return s.o.Policy
	}
	var f struct{ Policy struct{ URI string } }
	if s.registration.err != nil || json.Unmarshal(s.registration.body, &f) != nil {
		return ""
	}
	return f.Policy.URI
}

// checkPolicy reads the policy, which MUST be this agent's; a signature MUST be the owner's.
//
// An unsigned policy passes: the specification leaves the signature to the owner. A signature that cannot be compared
// with the owner, for want of the chain, passes too, and the detail says so.
func (s *suite) checkPolicy(ctx context.Context) (string, error) {
	uri := s.policyURI()
	if uri == "" {
		return "", skip("no policy is named, by --policy or the registration file")
	}
	if s.o.Documents == nil {
		return "", skip("documents are not read")
	}
	raw, err := s.read(ctx, uri)
	if err != nil {
		return "", fmt.Errorf("policy %.200q: %w", uri, err)
	}
	p, err := governance.Parse(raw)
	if err != nil {
		return "", fmt.Errorf("policy %.200q: %w", uri, err)
	}
	if of := string(p.File().AgentID); of != s.state.AgentID {
		return "", fmt.Errorf("the policy is of agent %.80s, health says %.80s", of, s.state.AgentID)
	}
	if p.Signature() == nil {
		return "valid, without a signature", nil
	}
	r, err := s.chain(ctx)
	if err != nil {
		return "valid; whose signature it has needs the chain", nil
	}
	id, err := repute.ParseTokenID(s.state.AgentID)
	if err != nil {
		return "", err
	}
	data := signed.Policy{AgentID: id, PolicyHash: p.Hash()}
	if err := signed.Check(ctx, nil, s.domain, r.Owner, data.Data(s.domain), p.Signature()); err != nil {
		return "", fmt.Errorf("the policy is not signed by the owner %s: %w", r.Owner, err)
	}
	return "valid, signed by the owner", nil
}
