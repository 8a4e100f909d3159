package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/indexer/node"
	"repute/indexer/verify"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/query"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	verify.CheckOptions
	rate float64 // JSON-RPC calls per second, of all endpoints together
}

// verifyCommand returns `repute verify`. Any failure that is no wrong usage is exit code 2: nothing was found to
// differ, and not everything was compared.
func verifyCommand(p *cli.Program) *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify --chain NAME --rpc URL",
		Short: "compare the index with the chain",
		Long: `Reads the receipts of stored blocks again and recomputes their roots, compares the
blocks' times with their headers', looks for blocks whose bloom admits events that are
not stored, and compares the state of all agents and their number at the end of the
range with the chain's own. Then compares the stored counts and sums of all agents with
the stored events, whatever the range is; --repair does not correct them, repute reindex
does. Works beside a running serve, and for imported chains.

Prints each difference. Exit codes: 0 nothing differs; 1 something does, or did before
--repair put it right; 2 something could not be checked, or wrong usage; 130 interrupted.

  repute verify --chain base --rpc https://your-node.example --from 41663783 --to 42000000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := verifyStored(cmd.Context(), p, o)
			var chosen cli.ExitError
			if err == nil || errors.As(err, &chosen) || errors.Is(err, repute.ErrInvalid) {
				return err
			}
			return fmt.Errorf("%w: %w", cli.ExitError{Code: cli.CodeUnchecked, Text: "not checked"}, err)
		},
	}
	p.Flags.Database(cmd.Flags())
	p.Flags.Endpoints(cmd.Flags())
	cmd.Flags().Uint64Var(&o.From, "from", 0, "first block; the chain's start block when 0")
	cmd.Flags().Uint64Var(&o.To, "to", 0, "last block; the newest final one when 0")
	cmd.Flags().BoolVar(&o.AllBlocks, "all-blocks", false,
		"read the receipts of every block, not only where events are or may be")
	cmd.Flags().BoolVar(&o.Repair, "repair", false,
		"put what is missing in its place, or have it done by the process that follows the chain")
	p.JSONFlag(cmd.Flags(), "print JSON")
	cmd.Flags().Float64Var(&o.rate, "rate", 500, "JSON-RPC calls per second")
	return cmd
}

// verifyStored compares the stored rows of the one configured chain with its endpoints. A chain that is stored with
// other registries than the configured ones is refused: all of its events would count as wrong.
func verifyStored(ctx context.Context, p *cli.Program, o verifyOptions) error {
	c, err := p.Flags.Load()
	if err != nil {
		return err
	}
	if len(c.Chains) != 1 {
		return repute.Invalid("chain", "exactly one is needed", "e.g. --chain ethereum --rpc URL")
	}
	return p.WithStore(ctx, func(c config.Config, db *store.DB) error {
		all, err := query.Chains(ctx, db)
		if err != nil {
			return err
		}
		configured, err := p.OneChain(c, cli.Plain(all)...)
		if err != nil {
			return err
		}
		stored, err := cli.Indexed(all, configured.ID)
		if err != nil {
			return err
		}
		configured.Imported = stored.Chain.Imported
		if err := chaindb.CheckChain(ctx, db, configured); err != nil {
			return fmt.Errorf("chain %d is stored otherwise: %w", configured.ID, err)
		}
		nodes, stop, err := witnesses(c.Chains[0].RPC)
		if err != nil {
			return err
		}
		defer stop()
		proven, err := ofChain(ctx, p, nodes, configured.ID)
		if err != nil {
			return err
		}
		v := verify.New(db, stored.Chain, func() []*node.Node { return proven },
			verify.Options{Rate: o.rate, Log: c.Logger(p.Stderr)})
		return checkChain(ctx, p, db, v, stored.Chain.ID, o)
	})
}

// witnesses connects to the endpoints given. The caller calls stop, which closes all.
func witnesses(rpc config.URLs) (nodes []*node.Node, stop func(), err error) {
	stop = func() {
		for _, n := range nodes {
			n.Close()
		}
	}
	for _, url := range rpc {
		n, err := node.New(url, node.Options{})
		if err != nil {
			stop()
			return nil, nil, err
		}
		nodes = append(nodes, n)
	}
	if len(nodes) == 0 {
		return nil, nil, repute.Invalid("rpc", "none is given", "--rpc URL behind --chain")
	}
	return nodes, stop, nil
}

// ofChain leaves out endpoints that do not tell which chain they serve: one of another chain has logs of the same
// addresses. An endpoint of another chain is wrong usage and ends the command; one that does not answer is left out
// with a line on standard error.
func ofChain(ctx context.Context, p *cli.Program, nodes []*node.Node, chainID uint64) (proven []*node.Node, err error) {
	var last error
	for _, n := range nodes {
		heads, err := n.Heads(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			last = err
			fmt.Fprintln(p.Stderr, "an endpoint is not asked, it does not tell its chain:", err)
		case heads.ChainID != chainID:
			return nil, repute.Invalid("rpc",
				fmt.Sprintf("an endpoint serves chain %d, not %d", heads.ChainID, chainID),
				fmt.Sprintf("give endpoints of chain %d, or name the chain that this one serves", chainID))
		default:
			proven = append(proven, n)
		}
	}
	if len(proven) == 0 {
		return nil, fmt.Errorf("no endpoint tells which chain it serves: %w", last)
	}
	return proven, nil
}

// verifyLease is how long a repairing verify that dies keeps the chain from others. It is short, because a follower of
// the chain waits for it, and long enough for a renewal to be late by some seconds.
const verifyLease = 10 * time.Second

// hold takes the chain's lease and renews it until stop, which gives it back. Only the holder of the lease may write
// the chain's rows: a follower that starts meanwhile waits, and a write after the lease was lost fails. A process that
// dies keeps others from the chain until the lease expires. repute.ErrHeld when another process has it.
func hold(ctx context.Context, db *store.DB, chainID uint64) (lease store.Lease, stop func(), err error) {
	lease, err = db.Acquire(ctx, chaindb.LeaseName(chainID), fmt.Sprintf("verify:%d", os.Getpid()), verifyLease)
	if err != nil {
		return lease, nil, err
	}
	renewing, cancel := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() {
		_ = db.KeepRenewed(renewing, lease, verifyLease) // every write checks whether it is still ours
	})
	return lease, func() {
		cancel()
		ended.Wait()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = db.Release(ctx, lease) // it expires
	}, nil
}

// checkChain runs the comparison. What is to be repaired while another process leads the chain is left to that one: it
// is told in the database, and repairs what it can confirm itself. Differences are printed as they are found, because a
// comparison may take hours; JSON is one value at the end.
func checkChain(ctx context.Context, p *cli.Program, db *store.DB, v *verify.Verifier, chainID uint64,
	o verifyOptions) error {
	var theirs bool
	if o.Repair {
		lease, stop, err := hold(ctx, db, chainID)
		switch {
		case errors.Is(err, repute.ErrHeld):
			theirs, o.Repair = true, false
		case err != nil:
			return err
		default:
			o.Lease = lease
			defer stop()
		}
	}
	report := verifyReport{Chain: chainID, Differences: []difference{}}
	var all []verify.Difference
	result, err := v.Check(ctx, o.CheckOptions, func(d verify.Difference) {
		all = append(all, d)
		report.Differences = append(report.Differences, encodeDifference(d))
		if !p.JSON {
			fmt.Fprintln(p.Stdout, report.Differences[len(report.Differences)-1])
		}
	})
	if err != nil {
		return err
	}
	if theirs && len(all) > 0 {
		if err := v.Report(ctx, all); err != nil {
			return err
		}
		fmt.Fprintln(p.Stderr,
			"another process leads the chain: it was told, and will repair blocks and events where it can")
	}
	report.sum(result)
	return conclude(p, report, result)
}

// conclude prints the sum and chooses the exit code. A difference that was repaired counts too.
func conclude(p *cli.Program, report verifyReport, r verify.CheckResult) error {
	err := p.Show(report, func(w io.Writer) error {
		fmt.Fprintln(w, summary(r))
		for _, what := range r.Unchecked {
			fmt.Fprintln(w, "not checked:", what)
		}
		return nil
	})
	switch {
	case err != nil:
		return err
	case r.Differences > 0:
		return cli.ExitError{Code: cli.CodeFailed,
			Text: "the index differs from the chain in " + cli.Count(r.Differences, "place")}
	case r.Unproven > 0 || len(r.Unchecked) > 0:
		return cli.ExitError{Code: cli.CodeUnchecked, Text: "not everything could be checked"}
	}
	return nil
}

// summary is the line a person reads last.
func summary(r verify.CheckResult) string {
	text := fmt.Sprintf("blocks %d to %d: %d compared with their receipts, %d of them unproven; %s compared; %s, %s repaired",
		r.Blocks.From, r.Blocks.To, r.Checked, r.Unproven, cli.Count(r.Agents, "agent"),
		cli.Count(r.Differences, "difference"), cli.Count(r.Repaired, "event"))
	if r.Retimed > 0 {
		text += ", the time of " + cli.Count(r.Retimed, "block") + " put right"
	}
	return text
}

// verifyReport is what verify --json prints. From and To are the compared blocks, both included. Differences and
// Unchecked are never null.
type verifyReport struct {
	Chain       uint64       `json:"chain"`
	From        uint64       `json:"fromBlock"`
	To          uint64       `json:"toBlock"`
	Blocks      int          `json:"blocksChecked"`
	Unproven    int          `json:"blocksUnproven"`
	Agents      int          `json:"agentsChecked"`
	Repaired    int          `json:"eventsRepaired"`
	Retimed     int          `json:"blocksRetimed"`
	Differences []difference `json:"differences"`
	Unchecked   []string     `json:"unchecked"`
}

// sum takes the numbers of a finished comparison. Differences were added while it ran.
func (v *verifyReport) sum(r verify.CheckResult) {
	v.From, v.To, v.Blocks, v.Unproven = r.Blocks.From, r.Blocks.To, r.Checked, r.Unproven
	v.Agents, v.Repaired, v.Retimed, v.Unchecked = r.Agents, r.Repaired, r.Retimed, append([]string{}, r.Unchecked...)
}

// difference is one place at which the index differs from the chain, or a total from the stored events. Kind is an
// event's name, Block for what is of the block itself, or Total for a stored count or sum that does not follow from the
// stored events.
type difference struct {
	Kind   string `json:"kind"`
	Agent  string `json:"agent,omitempty"`
	Client string `json:"client,omitempty"`
	From   uint64 `json:"fromBlock"`
	To     uint64 `json:"toBlock"`
	What   string `json:"difference"`
}

// encodeDifference returns a difference in the form of the output. Only a difference about one agent or client names
// it.
func encodeDifference(d verify.Difference) difference {
	out := difference{Kind: d.Kind.String(), From: d.Blocks.From, To: d.Blocks.To, What: d.What}
	switch {
	case d.Total != "":
		out.Kind = "Total"
	case d.Kind == 0:
		out.Kind = "Block"
	}
	if d.Agent != nil {
		out.Agent = d.Agent.Dec()
	}
	if d.Client != nil {
		out.Client = d.Client.Hex()
	}
	return out
}

// String is the line a person reads.
func (d difference) String() string {
	text := d.Kind
	if d.Agent != "" {
		text += " of agent " + d.Agent
	}
	if d.Client != "" {
		text += " and " + d.Client
	}
	if d.From == d.To {
		return fmt.Sprintf("%s, block %d: %s", text, d.From, d.What)
	}
	return fmt.Sprintf("%s, blocks %d to %d: %s", text, d.From, d.To, d.What)
}
