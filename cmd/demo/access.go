package main

import (
	"context"
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

// demoRoles lists them with what they are for. The order is that of rights, the least first.
func demoRoles() [][2]string {
	return [][2]string{{demoAsk, "gives tasks"}, {demoApprove, "answers what runs wait for"},
		{demoOperate, "registers agents, spends from the treasury within its caps"},
		{demoOwn, "sets what the treasury allows"}}
}

// roles names the roles of each token. With allRoles the token of role own has all of them.
func (d *demo) roles() map[string][]string {
	out := map[string][]string{}
	for _, r := range demoRoles() {
		out[r[0]] = []string{r[0]}
	}
	if d.allRoles {
		out[demoOwn] = []string{demoAsk, demoApprove, demoOperate, demoOwn}
	}
	return out
}

// tokenLines are the lines of the banner about the demo's tokens.
func (d *demo) tokenLines() string {
	var b strings.Builder
	for _, r := range demoRoles() {
		fmt.Fprintf(&b, "  %-11s %s  (%s)\n", r[0], d.tokens[r[0]], r[1])
	}
	return b.String()
}

// caps compares who can set what the payer may spend: the token with the role own alone. It is simulated, so nothing
// changes. A token that the route refuses is an error here, which is what the comparison expects of all others.
func (d *demo) caps(ctx context.Context, v *verification) {
	for _, r := range demoRoles() {
		err := d.call(ctx, r[0], http.MethodPut, "/v1/treasury/policies/"+agents.Payer+"?dry_run=true",
			operate.PolicyChange{NativePerTxCapWei: "1"}, nil)
		v.compare("roles that set caps", fmt.Sprintf("%s (%v)", r[0], err), err == nil, r[0] == demoOwn)
	}
}
