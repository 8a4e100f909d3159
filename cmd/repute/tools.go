package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/contracts"
	"repute/store"
	"repute/store/importdb"
	"repute/store/query"
)

// oneChain resolves the only --chain of a command; others know of chains that the
// configuration only names.
func (p *program) oneChain(c config, others ...repute.Chain) (repute.Chain, error) {
	if len(c.Chains) != 1 {
		return repute.Chain{}, repute.Invalid("chain", "exactly one is needed", "e.g. --chain ethereum or --chain 1")
	}
	c.complete(others...)
	return c.Chains[0].resolve()
}

// chosen is the stored chain that --chain names, or all of them where it is not given.
func (p *program) chosen(ctx context.Context, c config, db *store.DB) ([]repute.ChainStatus, error) {
	stored, err := query.Chains(ctx, db)
	if err != nil || len(p.flags.chains) == 0 {
		return stored, err
	}
	chain, err := p.oneChain(c, plain(stored)...)
	if err != nil {
		return nil, err
	}
	return indexed(stored, chain.ID)
}

// plain is the chains without what is known of them.
func plain(stored []repute.ChainStatus) []repute.Chain {
	chains := make([]repute.Chain, len(stored))
	for i, s := range stored {
		chains[i] = s.Chain
	}
	return chains
}

func (p *program) reindexCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reindex [--chain NAME]",
		Short: "rebuild histories and current rows from the stored events",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(c config, db *store.DB) error {
				chains, err := p.chosen(cmd.Context(), c, db)
				if err != nil {
					return err
				}
				for _, chain := range chains {
					start := time.Now()
					if err := importdb.Reindex(cmd.Context(), db, chain.Chain.ID, contracts.Read); err != nil {
						return fmt.Errorf("reindex chain %d: %w", chain.Chain.ID, err)
					}
					fmt.Fprintf(p.stderr, "reindexed %s (%d) in %s\n", chain.Name, chain.Chain.ID, time.Since(start).Round(time.Millisecond))
				}
				return nil
			})
		},
	}
	p.flags.database(cmd.Flags())
	p.flags.chain(cmd.Flags())
	return cmd
}

func (p *program) dumpCommand() *cobra.Command {
	var canonical bool
	cmd := &cobra.Command{
		Use:   "dump --canonical [--chain NAME]",
		Short: "print the index by natural keys, one JSON object per line",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !canonical {
				return repute.Invalid("canonical", "the only form there is", "repute dump --canonical")
			}
			return p.withStore(cmd.Context(), func(c config, db *store.DB) error {
				chains, err := p.chosen(cmd.Context(), c, db)
				if err != nil {
					return err
				}
				only := uint64(0) // all
				if len(p.flags.chains) > 0 {
					only = chains[0].Chain.ID
				}
				return importdb.Dump(cmd.Context(), db, p.stdout, only)
			})
		},
	}
	p.flags.database(cmd.Flags())
	p.flags.chain(cmd.Flags())
	cmd.Flags().BoolVar(&canonical, "canonical", false, "events, histories and current rows in key order, without ids and clocks")
	return cmd
}

func (p *program) migrateCommand() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use:       "migrate up|down",
		Short:     "bring the schema up, or take it down with everything in it",
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		ValidArgs: []string{"up", "down"},
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := p.flags.load()
			if err != nil {
				return err
			}
			if args[0] == "down" && !yes {
				if err := p.confirm("This removes the index with everything in it."); err != nil {
					return err
				}
			}
			database, err := findDatabase(cmd.Context(), c, c.logger(p.stderr))
			if err != nil {
				return err
			}
			defer database.stop()
			if args[0] == "down" {
				return store.MigrateDown(cmd.Context(), database.url)
			}
			return store.Migrate(cmd.Context(), database.url)
		},
	}
	p.flags.database(cmd.Flags())
	cmd.Flags().BoolVar(&yes, "yes", false, "take the schema down without asking")
	return cmd
}

// confirm asks a person for a yes; where none sits there, --yes must have been given.
func (p *program) confirm(what string) error {
	refused := repute.Invalid("yes", "not confirmed", "add --yes to do it without being asked")
	if !p.terminal {
		return refused
	}
	fmt.Fprintf(p.stderr, "%s Type yes to go on: ", what)
	answer, err := bufio.NewReader(p.stdin).ReadString('\n')
	if err != nil && err != io.EOF {
		return fmt.Errorf("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != "yes" {
		return refused
	}
	return nil
}

// indexed picks a chain, or says which ones there are instead.
func indexed(stored []repute.ChainStatus, id uint64) ([]repute.ChainStatus, error) {
	names := []string{}
	for _, c := range stored {
		if c.Chain.ID == id {
			return []repute.ChainStatus{c}, nil
		}
		names = append(names, fmt.Sprintf("%s (%d)", c.Name, c.Chain.ID))
	}
	hint := "nothing is stored yet: repute serve or repute import stores a chain"
	if len(names) > 0 {
		hint = "indexed: " + strings.Join(names, ", ")
	}
	return nil, repute.Invalid("chain", fmt.Sprintf("%d is not indexed", id), hint)
}

func (p *program) chainsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "chains",
		Short: "the networks known by name",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tID\tSTART BLOCK\tVERIFIED\tIDENTITY\tREPUTATION")
			for _, d := range contracts.Deployments() {
				fmt.Fprintf(w, "%s\t%d\t%d\t%t\t%s\t%s\n", d.Name, d.ChainID, d.StartBlock, d.StartVerified, d.Identity, d.Reputation)
			}
			return w.Flush()
		},
	}
}

func (p *program) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "version and build",
		Args:  cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			fmt.Fprintln(p.stdout, build())
		},
	}
}

// build names this build.
func build() string {
	return fmt.Sprintf("repute %s %s %s/%s", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// printJSON writes one value to standard output, indented.
func (p *program) printJSON(v any) error {
	enc := json.NewEncoder(p.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
