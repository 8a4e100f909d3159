package orchestrator

import (
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/policy"
)

// TestPolicyAsksAboutOneAgent: what the policy asks about names the agent, so that an answer
// holds for no other identity that is registered at the same place.
func TestPolicyAsksAboutOneAgent(t *testing.T) {
	t.Parallel()
	asks := func(m repute.Module) string { return (&work{module: m}).policySubject(policy.RequireApproval) }
	remote := repute.Module{Slug: "far", URL: "https://one.example", Agent: idOf(22),
		Proof: repute.ModuleProof{Kind: repute.ProofDomain, Host: "one.example"}}
	moved, sold, signed := remote, remote, remote
	moved.URL, sold.Agent, signed.Proof.Signer = "https://two.example", idOf(23), common.Address{1}
	for name, m := range map[string]repute.Module{"another place": moved, "another identity": sold,
		"another proof": signed, "none": {URL: remote.URL, Proof: remote.Proof}} {
		if asks(m) == asks(remote) {
			t.Errorf("%s: an answer about the one holds for the other", name)
		}
	}
	if local := asks(repute.Module{Slug: "near", Agent: idOf(22)}); local != "policy" {
		t.Errorf("a part of the binary is asked about as %q", local)
	}
}
