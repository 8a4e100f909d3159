package scores

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/store/query"
	"repute/store/rootdb"
	"repute/trust/replay"
	"repute/trust/rootfile"
)

// RootsCommand returns `repute roots` with its subcommands.
func RootsCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "roots",
		Short: "manage roots: the addresses at which trust starts",
		Long: `Scores follow the trust that flows from roots. On a chain without roots only sources give
raters weight (docs/reference/sources.md). Named sets beside the default one are for callers who ask for them. A change
of the default one counts from the next epoch on. docs/how-to/roots.md describes method and file.`,
	}
	cmd.AddCommand(rootsAddCommand(p), rootsRemoveCommand(p), rootsListCommand(p), rootsImportCommand(p))
	for _, sub := range cmd.Commands() {
		p.Flags.Database(sub.Flags())
		p.Flags.Chain(sub.Flags())
	}
	return cmd
}

// setFlag adds the flag --set.
func setFlag(cmd *cobra.Command, set *string) {
	cmd.Flags().StringVar(set, "set", repute.DefaultRoots, "name of the set")
}

// rootsAddCommand returns `repute roots add`. All that can be checked without the database is checked before it is
// opened, because opening may create one.
func rootsAddCommand(p *cli.Program) *cobra.Command {
	var set, weight, expires, reason string
	cmd := &cobra.Command{
		Use:     "add ADDRESS --reason TEXT [--chain NAME]",
		Short:   "add a root, or change the one with this address",
		Example: "  repute roots add 0x… --chain base --reason \"audits agents, https://…\" --expires 2027-06-30",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			root := repute.TrustRoot{Reason: reason}
			if root.Address, err = repute.ParseAddress("address", args[0]); err != nil {
				return err
			}
			if root.Weight, err = rootfile.ParseWeight(weight); err != nil {
				return err
			}
			if root.Expires, err = rootfile.ParseExpiry(expires, time.Now()); err != nil {
				return err
			}
			if err := cmp.Or(rootdb.CheckRoot(root), rootdb.CheckRootSet(set), needsChain(p)); err != nil {
				return err
			}
			return p.WithAnyStore(cmd.Context(), func(c config.Config, db *store.DB) error {
				chain, err := theChain(cmd.Context(), p, c, db)
				if err != nil {
					return err
				}
				flags := cmd.Flags()
				return addRoot(cmd.Context(), p, db, chain, set, root, flags.Changed("weight"),
					flags.Changed("expires"))
			})
		},
	}
	setFlag(cmd, &set)
	cmd.Flags().StringVar(&reason, "reason", "", "why it is trusted, so that others can check it")
	cmd.Flags().StringVar(&weight, "weight", "",
		"above 0, at most 1000; only the ratio between roots counts (default 1)")
	cmd.Flags().StringVar(&expires, "expires", "",
		"day or time from which on it does not count, by the chain's time (default never)")
	return cmd
}

// addRoot adds a root, or changes the root with its address: values that were not given stay. The set is read and
// written in two transactions: of two commands that change one root at once, the later one wins as a whole.
func addRoot(ctx context.Context, p *cli.Program, db *store.DB, chain uint64, set string, root repute.TrustRoot,
	weighs, expires bool) error {
	roots, err := rootdb.Roots(ctx, db, chain, set)
	if err != nil {
		return err
	}
	done := "added"
	for _, known := range roots {
		if known.Address != root.Address {
			continue
		}
		done = "changed"
		if !weighs {
			root.Weight = known.Weight
		}
		if !expires {
			root.Expires = known.Expires
		}
	}
	if err := rootdb.AddRoots(ctx, db, chain, set, []repute.TrustRoot{root}, false); err != nil {
		return err
	}
	fmt.Fprintf(p.Stdout, "%s %s in set %s of chain %d, weight %s, counts %s\n", done, root.Address.Hex(), set, chain,
		rootfile.FormatWeight(root.Weight), countsFrom(set))
	return warnUnindexed(ctx, p, db, chain)
}

// countsFrom describes when a change of a set becomes effective.
func countsFrom(set string) string {
	if set == repute.DefaultRoots {
		return "from the next epoch on"
	}
	return "at once for requests that name the set"
}

// warnUnindexed prints a warning if the chain is not indexed, because its name may be misspelled. It is no error: roots
// may be added before a chain is indexed.
func warnUnindexed(ctx context.Context, p *cli.Program, db *store.DB, chain uint64) error {
	stored, err := query.Chains(ctx, db)
	if err == nil && !slices.ContainsFunc(stored, func(c repute.ChainStatus) bool { return c.Chain.ID == chain }) {
		fmt.Fprintf(p.Stderr, "chain %d is not indexed here yet\n", chain)
	}
	return err
}

// rootsRemoveCommand returns `repute roots remove`. Scores of closed epochs keep the trust of the root: they are
// computed from the roots of their time.
func rootsRemoveCommand(p *cli.Program) *cobra.Command {
	var set string
	cmd := &cobra.Command{
		Use:   "remove ADDRESS [--chain NAME]",
		Short: "take a root out of a set",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := repute.ParseAddress("address", args[0])
			if err != nil {
				return err
			}
			return onChain(cmd.Context(), p, func(db *store.DB, chain uint64) error {
				if err := rootdb.RemoveRoot(cmd.Context(), db, chain, set, address); err != nil {
					return err
				}
				fmt.Fprintf(p.Stdout, "removed %s from set %s of chain %d, which counts %s\n", address.Hex(), set,
					chain, countsFrom(set))
				return nil
			})
		},
	}
	setFlag(cmd, &set)
	return cmd
}

// needsChain refuses a command that names no chain where none can be found: without a database there is no
// stored chain, and such a command MUST NOT create a database only to fail.
func needsChain(p *cli.Program) error {
	c, err := p.Flags.Load()
	if err != nil || c.HasDatabase() {
		return err
	}
	_, err = p.OneChain(c)
	return err
}

// theChain returns the id of the chain that --chain names, the only configured one, or the only
// stored one.
func theChain(ctx context.Context, p *cli.Program, c config.Config, db *store.DB) (uint64, error) {
	stored, err := query.Chains(ctx, db)
	if err != nil {
		return 0, err
	}
	if len(c.Chains) == 0 && len(stored) == 1 {
		return stored[0].Chain.ID, nil
	}
	chain, err := p.OneChain(c, cli.Plain(stored)...)
	return chain.ID, err
}

// onChain calls f with the configured database and the chain that a command is about. Unlike an import it never creates
// a database: there is nothing to show or to remove in a new one.
func onChain(ctx context.Context, p *cli.Program, f func(db *store.DB, chain uint64) error) error {
	return p.WithStore(ctx, func(c config.Config, db *store.DB) error {
		chain, err := theChain(ctx, p, c, db)
		if err != nil {
			return err
		}
		return f(db, chain)
	})
}

// rootsImportCommand returns `repute roots import`. The check of the whole set, with what is stored already, runs in
// the transaction that adds to it, and needs the options that the entries were read with.
func rootsImportCommand(p *cli.Program) *cobra.Command {
	set := ""
	var options rootfile.Options
	cmd := importCommand(p, fileImport[rootfile.Root]{
		list: "roots", one: "roots remove takes one away",
		read: func(in io.Reader, o rootfile.Options) ([]rootfile.Root, error) {
			options = o
			return rootfile.ReadRoots(in, o)
		},
		check: func() error { return rootdb.CheckRootSet(set) },
		chain: func(r rootfile.Root) uint64 { return r.ChainID },
		add: func(ctx context.Context, db *store.DB, chain uint64, of []rootfile.Root, replace bool) error {
			roots := make([]repute.TrustRoot, len(of))
			for i, r := range of {
				roots[i] = r.TrustRoot
			}
			return rootdb.AddRoots(ctx, db, chain, set, roots, replace, options.CheckSet)
		},
	})
	setFlag(cmd, &set)
	return cmd
}

// rootList is the JSON output for one set of roots.
type rootList struct {
	ChainID uint64      `json:"chainId"`
	Set     string      `json:"set"`
	Hash    common.Hash `json:"hash"` // the hash by which scores identify the set
	Roots   []rootView  `json:"roots"`
}

// rootView is one root or reviewed writer.
type rootView struct {
	Address string     `json:"address"`
	Weight  string     `json:"weight"` // decimal; only the ratio to the weights of the other roots counts
	Reason  string     `json:"reason"`
	Expires *time.Time `json:"expires"` // null: never
	Expired bool       `json:"expired"` // by this machine's clock; scores go by the time of blocks
}

// rootsListCommand returns `repute roots list`. Without --chain and --set it shows every set of every chain.
func rootsListCommand(p *cli.Program) *cobra.Command {
	var set string
	cmd := &cobra.Command{
		Use:   "list [--chain NAME] [--set NAME]",
		Short: "show the roots of all chains and sets, or of one",
		Args:  cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, _ []string) error {
			lists, err := rootLists(ctx, p, c, db, set)
			if err != nil {
				return err
			}
			return p.Show(lists, func(w io.Writer) error { return printRoots(w, lists) })
		}),
	}
	cmd.Flags().StringVar(&set, "set", "", "only this set")
	p.JSONFlag(cmd.Flags(), "a JSON list of sets")
	return cmd
}

// rootLists reads the sets of a chain, or of all chains. A set without roots does not exist. repute.ErrNotFound for a
// given set that no chain has.
func rootLists(ctx context.Context, p *cli.Program, c config.Config, db *store.DB, set string) ([]rootList, error) {
	only := uint64(0)
	if len(p.Flags.Chains) > 0 {
		chain, err := theChain(ctx, p, c, db)
		if err != nil {
			return nil, err
		}
		only = chain
	}
	sets, err := rootdb.RootSets(ctx, db)
	if err != nil {
		return nil, err
	}
	sets = slices.DeleteFunc(sets, func(s rootdb.RootSet) bool { return only != 0 && s.ChainID != only })
	lists := []rootList{}
	for _, s := range sets {
		if set != "" && s.Name != set {
			continue
		}
		roots, err := rootdb.Roots(ctx, db, s.ChainID, s.Name)
		if err != nil {
			return nil, err
		}
		lists = append(lists, encodeRoots(s, roots, time.Now()))
	}
	if set != "" && len(lists) == 0 {
		return nil, fmt.Errorf("a set %q with roots: %w; %s", set, repute.ErrNotFound, setNames(sets, only))
	}
	return lists, nil
}

// setNames lists the existing sets for a hint: those of one chain, or of all where chain is 0.
func setNames(sets []rootdb.RootSet, chain uint64) string {
	names := []string{}
	for _, s := range sets {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		names = []string{"none"}
	}
	slices.Sort(names)
	list := strings.Join(slices.Compact(names), ", ")
	if chain != 0 {
		return fmt.Sprintf("chain %d has only: %s", chain, list)
	}
	return "there are: " + list
}

// encodeRoots returns the JSON output for a set; expired roots are marked. The hash covers expired roots too: which of
// them counts depends on the time of a block, not on the clock of the caller.
func encodeRoots(s rootdb.RootSet, roots []repute.TrustRoot, now time.Time) rootList {
	list := rootList{ChainID: s.ChainID, Set: s.Name, Hash: replay.HashInput(replay.EncodeRoots(roots)),
		Roots: make([]rootView, len(roots))}
	for i, r := range roots {
		list.Roots[i] = rootView{Address: r.Address.Hex(), Weight: rootfile.FormatWeight(r.Weight), Reason: r.Reason}
		if !r.Expires.IsZero() {
			list.Roots[i].Expires, list.Roots[i].Expired = &r.Expires, !now.Before(r.Expires)
		}
	}
	return list
}

// printRoots prints sets as tables.
func printRoots(w io.Writer, lists []rootList) error {
	if len(lists) == 0 {
		fmt.Fprintln(w, "no roots: only sources give raters weight")
		return nil
	}
	t := cli.NewTable(w, "CHAIN", "SET", "ADDRESS", "WEIGHT", "EXPIRES", "REASON")
	for _, l := range lists {
		for _, r := range l.Roots {
			expires := "never"
			if r.Expires != nil {
				expires = r.Expires.Format(time.RFC3339)
			}
			if r.Expired {
				expires = "EXPIRED " + expires
			}
			t.Row(l.ChainID, l.Set, r.Address, r.Weight, expires, r.Reason)
		}
	}
	return t.Flush()
}
