package scores

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/contracts"
	"repute/store"
	"repute/store/query"
	"repute/trust/rating"
	"repute/trust/rootfile"
)

// fileImport describes one kind of list that is imported from files: roots and reviewed writers, or links.
type fileImport[T any] struct {
	list string // name of the entries, in the plural
	one  string // hint how to remove one entry
	// read reads all entries or returns the first error with its line; nothing is stored before it has read all.
	read func(io.Reader, rootfile.Options) ([]T, error)
	// check checks flags before anything is read; nil: there is nothing to check.
	check func() error
	// chain returns the id of the chain that an entry is about.
	chain func(T) uint64
	// add stores the entries of one chain in one transaction. With replace it removes those that are not among them.
	add func(ctx context.Context, db *store.DB, chain uint64, of []T, replace bool) error
}

// importCommand returns the command that imports a list from a file.
func importCommand[T any](p *cli.Program, f fileImport[T]) *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "import FILE|- [--chain NAME] [--replace]",
		Short: "add all " + f.list + " of a file, or none where one is wrong",
		Long: `The file is YAML, or one JSON object per line: see docs/how-to/roots.md. --chain is for
entries that name none; those of another chain are refused.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.check != nil {
				if err := f.check(); err != nil {
					return err
				}
			}
			return importList(cmd.Context(), p, args[0], func(db *store.DB, in io.Reader, o rootfile.Options) error {
				return f.run(cmd.Context(), p.Stdout, db, in, o, replace)
			})
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "drop the "+f.list+" of the file's chains that it does not list")
	return cmd
}

// run stores the entries of each chain and prints their number. A file without entries is refused,
// because a truncated file would remove all entries.
func (f fileImport[T]) run(ctx context.Context, w io.Writer, db *store.DB, in io.Reader, o rootfile.Options,
	replace bool) error {
	entries, err := f.read(in, o)
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return repute.Invalid(f.list, "the file lists none", "give at least one entry; "+f.one)
	}
	chains := map[uint64][]T{}
	for _, e := range entries {
		chains[f.chain(e)] = append(chains[f.chain(e)], e)
	}
	for _, chain := range slices.Sorted(maps.Keys(chains)) {
		if err := f.add(ctx, db, chain, chains[chain], replace); err != nil {
			return err
		}
		fmt.Fprintf(w, "%d %s of chain %d\n", len(chains[chain]), f.list, chain)
	}
	return nil
}

// importList opens a file of entries and finds the chain for entries that name none. A database is created where there
// is none, so that roots can be given before the first event is indexed. The errors of entries get the name of the file
// before their lines.
func importList(ctx context.Context, p *cli.Program, name string,
	read func(*store.DB, io.Reader, rootfile.Options) error) error {
	in, err := p.OpenInput(name)
	if err != nil {
		return err
	}
	defer in.Close()
	return p.WithAnyStore(ctx, func(c config.Config, db *store.DB) error {
		stored, err := query.Chains(ctx, db)
		if err != nil {
			return err
		}
		o := rootfile.Options{Now: time.Now(), Only: len(p.Flags.Chains) > 0, Chain: chainNamed(c, cli.Plain(stored))}
		if len(p.Flags.Chains) > 0 || len(c.Chains) == 1 || len(c.Chains) == 0 && len(stored) == 1 {
			if o.ChainID, err = theChain(ctx, p, c, db); err != nil {
				return err
			}
		}
		if o.Params, err = tagTable(c); err != nil {
			return err
		}
		if err := read(db, in, o); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// tagTable returns the configured parameters, whose table rules of writers must fit.
func tagTable(c config.Config) (*rating.Params, error) {
	files, err := c.Trust.Options()
	if err != nil {
		return nil, err
	}
	return rating.ReadParams(files.Params, files.Tags)
}

// chainNamed finds a chain by the name that the configuration, the database or the list of known networks has for it.
// The later of these wins: a name of the configuration is what its operator means by it, whatever network others call
// by it.
func chainNamed(c config.Config, stored []repute.Chain) func(string) (uint64, bool) {
	names := map[string]uint64{}
	for _, d := range contracts.Deployments() {
		names[d.Name] = d.ChainID
	}
	for _, s := range stored {
		names[s.Name] = s.ID
	}
	for _, own := range c.Chains {
		if own.ID != 0 {
			names[own.Name] = own.ID
		}
	}
	return func(name string) (uint64, bool) { id, known := names[name]; return id, known && name != "" }
}
