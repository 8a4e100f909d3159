package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"

	"repute/orchestrator/agents"
	"repute/orchestrator/operate"
)

// Roles of the demo's tokens, each of which is named after its one role.
const (
	demoAsk     = "ask"
	demoApprove = "approve"
	demoOperate = "operate"
	demoOwn     = "own"
)

// demoRoles lists them with what they are for.
func demoRoles() [][2]string {
	return [][2]string{{demoAsk, "gives tasks"}, {demoApprove, "answers what runs wait for"}, {demoOperate, "registers agents, spends from the treasury within its caps"},
		{demoOwn, "sets what the treasury allows"}}
}

// access makes a token for each role, so that nobody who spends sets the caps, and nobody who
// gives a task approves of it. With allRoles the token of role own has all of them.
func (c *orchestratorConfig) access(allRoles bool) {
	c.Tokens, c.Roles = map[string]string{}, map[string][]string{}
	for _, r := range demoRoles() {
		c.Tokens[r[0]], c.Roles[r[0]] = rand.Text(), []string{r[0]}
	}
	if allRoles {
		c.Roles[demoOwn] = []string{demoAsk, demoApprove, demoOperate, demoOwn}
	}
}

// tokens are the lines of the banner about the demo's tokens.
func (d *demo) tokens() string {
	var b strings.Builder
	for _, r := range demoRoles() {
		fmt.Fprintf(&b, "  %-11s %s  (%s)\n", r[0], d.config.Orchestrator.Tokens[r[0]], r[1])
	}
	return b.String()
}

// call asks the demo's own API, with the token of a role.
func (d *demo) call(ctx context.Context, role, method, path string, body, into any) error {
	own := elsewhere{d.base, d.config.Orchestrator.Tokens[role]}
	if err := own.call(ctx, method, path, body, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// caps compares who can set what the payer may spend: the token with the role own alone. It is
// simulated, so nothing changes.
func (d *demo) caps(ctx context.Context, v *verification) {
	for _, r := range demoRoles() {
		err := d.call(ctx, r[0], http.MethodPut, "/v1/treasury/policies/"+agents.Payer+"?dry_run=true", operate.PolicyChange{NativePerTxCapWei: "1"}, nil)
		v.compare("roles that set caps", fmt.Sprintf("%s (%v)", r[0], err), err == nil, r[0] == demoOwn)
	}
}
