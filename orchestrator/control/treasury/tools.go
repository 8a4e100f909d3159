package treasury

import (
	"cmp"
	"context"
	"strconv"

	"repute/internal/httpapi"
	"repute/mcp"
	"repute/orchestrator/control/rest"
	"repute/orchestrator/operate"
)

// Inputs of the tools that send transactions: the bodies of the routes, and the parameters of
// ActInput.
type (
	// HowTool are the parameters of an operator action.
	HowTool struct {
		Key     string `json:"idempotencyKey,omitempty" maxLength:"80" doc:"equal keys: one operator action"`
		Approve bool   `json:"approve,omitempty" doc:"approve what the policy leaves to a person"`
	}
	treasuryPolicyTool struct {
		Slug string `json:"agentSlug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$"`
	}
	identityTool struct {
		operate.Identity
		HowTool
		rest.DryRunTool
	}
	walletTool struct {
		rest.SlugTool
		OperatorWallet string `json:"operatorWallet" pattern:"^0x[0-9a-fA-F]{40}$" doc:"that the agent is to have"`
		Deadline       uint64 `json:"deadline,omitempty" doc:"of the signature, seconds since 1970"`
		Signature      string `json:"signature,omitempty" pattern:"^0x([0-9a-fA-F]{2})*$" doc:"of the wallet over EIP-712 AgentWalletSet; absent: made here, where its key is configured"`
		HowTool
		rest.DryRunTool
	}
	configureTool struct {
		AgentSlug string `json:"agentSlug" pattern:"^[a-z0-9]+(-[a-z0-9]+)*$" doc:"whose policy it is"`
		operate.PolicyChange
		HowTool
		rest.DryRunTool
	}
	callTool struct {
		operate.TreasuryCall
		HowTool
		rest.DryRunTool
	}
	transferTool struct {
		operate.Transfer
		HowTool
		rest.DryRunTool
	}
	feedbackTool struct {
		AgentID       mcp.Text `json:"agentId" doc:"token id, chain:id or eip155:chain:registry:id"`
		FromAddress   string   `json:"fromAddress" pattern:"^0x[0-9a-fA-F]{40}$" doc:"of a configured agent's key"`
		Value         mcp.Text `json:"value" doc:"a whole number; with valueDecimals 2, 850 is 8.50"`
		ValueDecimals uint8    `json:"valueDecimals,omitempty" maximum:"18"`
		Tag1          string   `json:"tag1,omitempty" doc:"what is rated, e.g. successRate"`
		Tag2          string   `json:"tag2,omitempty" doc:"qualifies tag1, e.g. treasury-ops"`
		Endpoint      string   `json:"endpoint,omitempty" doc:"URL that was used"`
		FeedbackURI   string   `json:"feedbackURI,omitempty" doc:"of a file that says more"`
		FeedbackHash  string   `json:"feedbackHash,omitempty" pattern:"^0x[0-9a-fA-F]{64}$" doc:"keccak256 of that file"`
		HowTool
		rest.DryRunTool
	}
)

// operatorTool returns a tool that only reads. It needs a key like the route, since the treasury's state is not
// public here.
func operatorTool[In, Out any](s *Service, do func(*operate.Operator, context.Context, In) (Out,
	error)) func(context.Context, In) (Out, error) {
	return rest.Private(s.router, func(ctx context.Context, in In) (out Out, err error) {
		o, err := s.operator()
		if err != nil {
			return out, err
		}
		return do(o, ctx, in)
	})
}

// actTool carries out an action like its route, with the same caller name and the same errors. Its role is checked
// here and not by the path of a request, as all tools have one path.
func actTool[R any](ctx context.Context, s *Service, asked httpapi.Role, r R, dry rest.DryRunTool, how HowTool,
	do func(*operate.Operator, context.Context, R, operate.How) (operate.Act, error)) (act operate.Act, err error) {
	needed := []httpapi.Role{asked}
	if how.Approve {
		needed = append(needed, httpapi.RoleApprove)
	}
	by, err := s.router.Caller(ctx, needed...)
	if err != nil {
		return act, err
	}
	in := ActInput{DryRun: httpapi.Flag(strconv.FormatBool(dry.DryRun)),
		Approve: httpapi.Flag(strconv.FormatBool(how.Approve)),
		Key:     how.Key}
	return rest.Body(s.acts(by, &in, func(o *operate.Operator, h operate.How) (operate.Act,
		error) {
		return do(o, ctx, r, h)
	}))
}

// AddTools adds the tools about the treasury, calls of it, identities and feedback.
func (s *Service) AddTools(server *mcp.Server) error {
	return cmp.Or(s.addTreasuryTools(server), s.addCallTools(server), s.addIdentityTools(server))
}

// simulated is the parameter of tools that only simulate.
func simulated() rest.DryRunTool { return rest.DryRunTool{DryRun: true} }

// onchain is the effect of tools that send transactions, which cannot be undone.
func onchain(repeats bool) mcp.Effect {
	return mcp.Effect{Changes: true, Repeats: repeats, Destroy: true, World: true}
}

// addTreasuryTools adds the tools about the treasury and its policies.
func (s *Service) addTreasuryTools(server *mcp.Server) error {
	return cmp.Or(
		mcp.Add(server, mcp.Tool[struct{}, operate.TreasuryStatus]{Name: "openfi_get_treasury_status",
			Effect:      mcp.Effect{World: true},
			Description: "The treasury at the newest block: balance in wei, owner, whether it is paused.",
			Do: operatorTool(s,
				func(o *operate.Operator, ctx context.Context, _ struct{}) (operate.TreasuryStatus, error) {
					return o.TreasuryStatus(ctx)
				})}),
		mcp.Add(server, mcp.Tool[treasuryPolicyTool, operate.TreasuryPolicy]{Name: "openfi_get_treasury_policy",
			Effect:      mcp.Effect{World: true},
			Description: "An agent's policy in the treasury: caps in wei per transaction and window, and what of them is left now.",
			Do: operatorTool(s,
				func(o *operate.Operator, ctx context.Context, in treasuryPolicyTool) (operate.TreasuryPolicy,
					error) {
					return o.TreasuryPolicy(ctx, in.Slug)
				})}),
		mcp.Add(server, mcp.Tool[configureTool, operate.Act]{Name: "openfi_configure_treasury_policy",
			Effect:      onchain(true),
			Description: "Changes an agent's policy in the treasury by the treasury's owner; what is absent stays. Takes the role own. Next: openfi_get_treasury_policy.",
			Do: func(ctx context.Context, in configureTool) (operate.Act, error) {
				in.PolicyChange.AgentSlug = in.AgentSlug
				return actTool(ctx, s, httpapi.RoleOwn, in.PolicyChange, in.DryRunTool, in.HowTool,
					(*operate.Operator).ConfigurePolicy)
			}}),
	)
}

// addCallTools adds the tools by which the treasury calls and pays.
func (s *Service) addCallTools(server *mcp.Server) error {
	const call = "a call or a payment by the treasury for an agent"
	const transfer = "a transfer of tokens out of the treasury for an agent"
	return cmp.Or(
		mcp.Add(server, mcp.Tool[operate.TreasuryCall, operate.Act]{Name: "openfi_dry_run_call",
			Effect: mcp.Effect{World: true},
			Description: "Simulates " + call +
				": whether it would succeed, its gas, what the policy decides. Next: openfi_execute_call.",
			Do: func(ctx context.Context, in operate.TreasuryCall) (operate.Act, error) {
				return actTool(ctx, s, httpapi.RoleOperate, in, simulated(), HowTool{}, (*operate.Operator).ExecuteCall)
			}}),
		mcp.Add(server, mcp.Tool[callTool, operate.Act]{Name: "openfi_execute_call", Effect: onchain(false),
			Description: "Simulates, decides and sends " + call +
				". A pending act goes on by itself; ask again with its idempotencyKey.",
			Do: func(ctx context.Context, in callTool) (operate.Act, error) {
				return actTool(ctx, s, httpapi.RoleOperate, in.TreasuryCall, in.DryRunTool, in.HowTool,
					(*operate.Operator).ExecuteCall)
			}}),
		mcp.Add(server, mcp.Tool[operate.Transfer, operate.Act]{Name: "openfi_dry_run_transfer_erc20",
			Effect:      mcp.Effect{World: true},
			Description: "Simulates " + transfer + ". Next: openfi_transfer_erc20.",
			Do: func(ctx context.Context, in operate.Transfer) (operate.Act, error) {
				return actTool(ctx, s, httpapi.RoleOperate, in, simulated(), HowTool{},
					(*operate.Operator).TransferERC20)
			}}),
		mcp.Add(server, mcp.Tool[transferTool, operate.Act]{Name: "openfi_transfer_erc20", Effect: onchain(false),
			Description: "Simulates, decides and sends " + transfer + ".",
			Do: func(ctx context.Context, in transferTool) (operate.Act, error) {
				return actTool(ctx, s, httpapi.RoleOperate, in.Transfer, in.DryRunTool, in.HowTool,
					(*operate.Operator).TransferERC20)
			}}),
	)
}

// addIdentityTools adds the tools about onchain identities and feedback.
func (s *Service) addIdentityTools(server *mcp.Server) error {
	return cmp.Or(
		mcp.Add(server, mcp.Tool[identityTool, operate.Act]{Name: "openfi_register_identity", Effect: onchain(true),
			Description: "Registers an agent in the Identity Registry by its configured key, or brings its registration up to date.",
			Do: func(ctx context.Context, in identityTool) (operate.Act, error) {
				return actTool(ctx, s, httpapi.RoleOperate, in.Identity, in.DryRunTool, in.HowTool,
					(*operate.Operator).RegisterIdentity)
			}}),
		mcp.Add(server, mcp.Tool[walletTool, operate.Act]{Name: "openfi_set_agent_wallet", Effect: onchain(true),
			Description: "Sets an agent's wallet in the Identity Registry, which takes a signature of the new wallet.",
			Do: func(ctx context.Context, in walletTool) (operate.Act, error) {
				r := operate.AgentWallet{Slug: in.Slug, OperatorWallet: in.OperatorWallet, Deadline: in.Deadline,
					Signature: in.Signature}
				return actTool(ctx, s, httpapi.RoleOperate, r, in.DryRunTool, in.HowTool,
					(*operate.Operator).SetAgentWallet)
			}}),
		mcp.Add(server, mcp.Tool[feedbackTool, operate.Act]{Name: "openfi_post_feedback", Effect: onchain(false),
			Description: "Gives feedback about an agent in the Reputation Registry by a configured key.",
			Do: func(ctx context.Context, in feedbackTool) (operate.Act, error) {
				r := operate.FeedbackRequest{AgentID: string(in.AgentID), FromAddress: in.FromAddress,
					Value:         string(in.Value),
					ValueDecimals: in.ValueDecimals,
					Tag1:          in.Tag1, Tag2: in.Tag2, Endpoint: in.Endpoint, FeedbackURI: in.FeedbackURI,
					FeedbackHash: in.FeedbackHash}
				return actTool(ctx, s, httpapi.RoleOperate, r, in.DryRunTool, in.HowTool,
					(*operate.Operator).PostFeedback)
			}}),
	)
}
