package bulk

import (
	"context"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"repute"
	"repute/api/export"
	"repute/cmd/repute/internal/cli"
	"repute/internal/indexclient"
)

// downloadFlags are the flags of a download. block is 0 for the newest final block. again takes the newest state even
// where a manifest is stored.
type downloadFlags struct {
	sets                []string
	format, server, dir string
	chain, block        uint64
	again               bool
}

// AddExport makes cmd, which has subcommands, download whole sets too. Without any flag it prints its help, because
// export alone was the name of the group of commands.
func AddExport(p *cli.Program, cmd *cobra.Command) {
	var f downloadFlags
	cmd.Use = "export --set NAME --chain ID --out DIR"
	cmd.Short = "download whole sets from a server; subcommands write events to a file and load sets into ClickHouse"
	cmd.Long = `Downloads whole sets of a chain as of one final block, in parts whose hashes are
verified. A download that broke off continues where it ended when the command is
repeated. REPUTE_API_KEY is sent as the API key.

  repute export --set agents,feedback --chain 8453 --format parquet --out base

export events writes the file that import reads instead, from the database.`
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if len(f.sets) == 0 && f.dir == "" {
			return cmd.Help()
		}
		return download(cmd.Context(), p, f)
	}
	set := cmd.Flags()
	set.StringSliceVar(&f.sets, "set", nil, "what to download: agents, feedback, events, scores, changes")
	set.StringVar(&f.format, "format", export.Parquet, "parquet or ndjson")
	set.StringVar(&f.server, "server", "http://127.0.0.1:8080", "URL of the server")
	set.StringVar(&f.dir, "out", "", "directory that gets a directory for each set")
	set.Uint64Var(&f.chain, "chain", 0, "id of the chain")
	set.Uint64Var(&f.block, "block", 0, "a final block; the newest when absent")
	set.BoolVar(&f.again, "again", false, "take the newest state, although a download is complete or under way")
	cmd.AddCommand(loadCommand(p))
}

// check refuses flags that cannot be meant, before anything is asked.
func (f *downloadFlags) check() error {
	switch {
	case len(f.sets) == 0:
		return repute.Invalid("set", "is missing", fmt.Sprintf("one or more of %v", export.Sets()))
	case f.dir == "":
		return repute.Invalid("out", "is missing", "a directory for the files")
	case f.chain == 0:
		return repute.Invalid("chain", "is missing", "the id of an indexed chain, e.g. --chain 8453")
	case f.format != export.Parquet && f.format != export.NDJSON:
		return repute.Invalid("format", fmt.Sprintf("%.40q is no format", f.format), "parquet or ndjson")
	}
	for _, name := range f.sets {
		if !slices.Contains(export.Sets(), name) {
			return repute.Invalid("set", fmt.Sprintf("%.40q is no set", name),
				fmt.Sprintf("one or more of %v", export.Sets()))
		}
	}
	return indexclient.CheckURL("server", f.server)
}

// download downloads the sets one after the other. All are of the block of the first one. A set that fails ends the
// command; those before it stay, and the same command skips them.
func download(ctx context.Context, p *cli.Program, f downloadFlags) error {
	if err := f.check(); err != nil {
		return err
	}
	d := newDownloader(f, os.Getenv("REPUTE_API_KEY"))
	for _, name := range f.sets {
		m, fetched, err := d.set(ctx, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		d.block = m.Block
		fmt.Fprintf(p.Stdout, "%s: %s in %s (%s) of chain %d at block %d; %s downloaded\n", name,
			cli.Count(m.Rows, "row"),
			cli.Count(len(m.Parts), "part"), cli.Count(m.Bytes, "byte"), m.ChainID, m.Block, cli.Count(fetched, "byte"))
	}
	return nil
}
