package agents

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/agent/capability"
	"repute/agent/compliance"
	"repute/agent/registry"
	"repute/cmd/repute/internal/cli"
	"repute/orchestrator/wallet/keys"
	"repute/resolver"
)

// complianceFlags are those of repute agent verify-compliance. Flags that are empty take the variable of the
// environment that their help names.
type complianceFlags struct {
	url, rpc, agent, metadata, policy string
	capability, input                 string
	keyFile, mode                     string
	maxPay                            uint64
	maxBody                           int64
}

// ComplianceCommand is repute agent verify-compliance.
func ComplianceCommand(p *cli.Program) *cobra.Command {
	var f complianceFlags
	cmd := &cobra.Command{
		Use:   "verify-compliance [--url URL] [--json]",
		Short: "check a running agent against the Agent Runtime Specification 1.0",
		Long: `Checks a runtime from outside, in whatever language it is written: that the agent is
registered and its metadata URI resolves, that answers are signed by its owner or wallet, that
health, errors and limits are as specified, that payments by x402 work and wrong ones are
refused, and that the policy is valid. A payment is made with --pay-key-file only: it moves money.
Exit codes: 0 all checks passed, 1 one failed, 2 none failed and one could not be made.`,
		Example: `  repute agent verify-compliance --url https://agent.example --rpc https://mainnet.base.org --pay-key-file payer.key`,
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), p) },
	}
	set := cmd.Flags()
	set.StringVar(&f.url, "url", "http://127.0.0.1:3000", "URL of the runtime")
	set.StringVar(&f.rpc, "rpc", "", "URLs of nodes of the agent's chain, separated by commas (RPC_URL)")
	set.StringVar(&f.agent, "agent", "", "agent id that the runtime must have, in any form (AGENT_ID)")
	set.StringVar(&f.metadata, "metadata-uri", "", "URI that the chain must have (AGENT_METADATA_URI)")
	set.StringVar(&f.policy, "policy", "",
		"file or URL of policy.json; the one of the registration file (AGENT_POLICY_URI)")
	set.StringVar(&f.capability, "capability", "", "name of a paid capability; the first that demands a payment")
	set.StringVar(&f.input, "input", "", "input of the capabilities as JSON; @FILE reads a file")
	set.StringVar(&f.keyFile, "pay-key-file", "", "file with the private key that pays (REPUTE_PAY_KEY_FILE)")
	set.Uint64Var(&f.maxPay, "max-pay", compliance.DefaultMaxPay,
		"most that one payment may cost, in smallest units of its token")
	set.Int64Var(&f.maxBody, "max-body", compliance.DefaultMaxBody, "limit of requests of the runtime, in bytes")
	set.StringVar(&f.mode, "expect-mode", string(compliance.Normal),
		"how the agent is expected to work: normal, degraded or shutdown")
	p.JSONFlag(set, "print JSON")
	return cmd
}

// run makes the checks and prints them. A report about another agent than the caller named is an error and is not
// printed.
func (f *complianceFlags) run(ctx context.Context, p *cli.Program) error {
	o, err := f.options(p)
	if err != nil {
		return err
	}
	documents, err := f.documents()
	if err != nil {
		return err
	}
	defer documents.Client.Close()
	o.Documents = documents
	report, err := compliance.Run(ctx, o)
	if err != nil {
		return err
	}
	if err := f.sameAgent(report); err != nil {
		return err
	}
	err = p.Show(report, func(w io.Writer) error { return showReport(w, report) })
	if code := report.Exit(); err == nil && code != 0 {
		text := map[int]string{1: "a check failed", 2: "a check could not be made"}[code]
		return cli.ExitError{Code: code, Text: "verify-compliance: " + text}
	}
	return err
}

// options are those of the checks without documents.
func (f *complianceFlags) options(p *cli.Program) (o compliance.Options, err error) {
	o = compliance.Options{URL: f.url, MetadataURI: cmp.Or(f.metadata, os.Getenv("AGENT_METADATA_URI")),
		Policy: cmp.Or(f.policy, os.Getenv("AGENT_POLICY_URI")), Capability: f.capability, Input: []byte(f.input),
		MaxPay: f.maxPay, MaxBody: f.maxBody, Mode: compliance.Mode(f.mode)}
	if name, ok := strings.CutPrefix(f.input, "@"); ok {
		if o.Input, err = p.ReadInput("input", name, capability.MaxBytes); err != nil {
			return o, err
		}
	}
	if o.MaxBody < 1 || o.MaxBody > 256<<20 {
		return o, repute.Invalid("max-body", "is out of range", "1 to 268435456")
	}
	if nodes := cmp.Or(f.rpc, os.Getenv("RPC_URL")); nodes != "" {
		o.Chain = nodesOf(strings.Split(nodes, ","))
	}
	if file := cmp.Or(f.keyFile, os.Getenv("REPUTE_PAY_KEY_FILE")); file != "" {
		k := keys.Config{KeyFile: file}
		if o.Payer, err = k.Open(nil, "pay-key-file"); err != nil {
			return o, err
		}
	}
	return o, nil
}

// sameAgent refuses a report about another agent than the caller's. Parts of the id that the caller leaves out are not
// compared.
func (f *complianceFlags) sameAgent(r *compliance.Report) error {
	want := cmp.Or(f.agent, os.Getenv("AGENT_ID"))
	if want == "" {
		return nil
	}
	ref, err := repute.ParseAgentRef(want)
	if err != nil {
		return repute.Invalid("agent", fmt.Sprintf("%.80q is no agent id", want), repute.AgentIDForms)
	}
	got, err := repute.ParseAgentRef(r.Agent)
	if err != nil || ref.TokenID != got.TokenID || ref.ChainID != 0 && ref.ChainID != got.ChainID ||
		ref.Registry != nil && (got.Registry == nil || *ref.Registry != *got.Registry) {
		return repute.Invalid("agent", fmt.Sprintf("the runtime is agent %q", cli.Visible(r.Agent)), want)
	}
	return nil
}

// showReport prints a line for each check.
func showReport(w io.Writer, r *compliance.Report) error {
	fmt.Fprintf(w, "agent %s at %s\n", cli.Visible(r.Agent), r.URL)
	for _, c := range r.Checks {
		verdict := "FAILED"
		switch {
		case c.Skipped:
			verdict = "skipped"
		case c.OK:
			verdict = "ok"
		}
		if _, err := fmt.Fprintf(w, "%-8s %-18s section %-9s %s\n", verdict, c.ID, c.Section,
			cli.Visible(c.Detail)); err != nil {
			return err
		}
	}
	return nil
}

// nodesOf are nodes of an agent's chain. They are opened for each question, because few are asked.
type nodesOf []string

// Agent implements compliance.Chain.
func (n nodesOf) Agent(ctx context.Context, id repute.AgentID) (out compliance.Registered, err error) {
	r, err := registry.Open(registry.Options{ID: id, RPC: n})
	if err != nil {
		return out, err
	}
	defer r.Close()
	chain, err := r.ChainID(ctx)
	if err != nil {
		return out, err
	}
	if chain != id.ChainID {
		return out, repute.Invalid("rpc", fmt.Sprintf("its nodes are of chain %d, answers are signed for %d", chain,
			id.ChainID),
			"nodes of the agent's chain")
	}
	a, err := r.Agent(ctx)
	return compliance.Registered{Owner: a.Owner, Wallet: a.Wallet, URI: a.URI}, err
}

// documentsOf reads URIs as indexers do, and files of this machine. Only a URI without a colon is taken for a file:
// none that an agent names as a URL is read from this machine.
type documentsOf struct{ documents }

// documents lets documents be read from the host of the runtime too, which may be private.
func (f *complianceFlags) documents() (d documentsOf, err error) {
	u, err := url.Parse(f.url)
	if err != nil {
		return d, repute.Invalid("url", err.Error(), "http://HOST:PORT or https://HOST")
	}
	d.Client, err = resolver.New(resolver.Options{GuardOptions: resolver.GuardOptions{AllowHosts: []string{u.Host}}})
	return d, err
}

// Read implements compliance.Documents.
func (d documentsOf) Read(ctx context.Context, uri string) ([]byte, error) {
	if !strings.Contains(uri, ":") {
		file, err := os.Open(uri)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		body, err := io.ReadAll(io.LimitReader(file, capability.MaxBytes+1))
		if err == nil && len(body) > capability.MaxBytes {
			err = repute.Invalid("policy", fmt.Sprintf("%s is larger than %d bytes", uri, capability.MaxBytes), "a smaller file")
		}
		return body, err
	}
	return d.documents.Read(ctx, uri)
}
