package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/bulk"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/progress"
	"repute/indexer/archive"
	"repute/store"
	"repute/store/importdb"
	"repute/store/query"
)

// exportCommand returns `repute export` with its subcommand events. The command itself downloads whole sets and is made
// by package bulk.
func exportCommand(p *cli.Program) *cobra.Command {
	var blocks repute.BlockRange
	var file string
	events := &cobra.Command{
		Use:   "events --chain NAME [--from N] [--to N] [-o FILE]",
		Short: "write the logs of a chain as a snapshot that import reads",
		Long: `Writes JSON, one value per line: a header with the chain's registries, every log
with its block's hash and time, and a count. The blocks are all up to the newest
final one when nothing else is said. A name that ends in .gz is compressed.

  repute export events --chain base -o base.jsonl.gz
  repute import base.jsonl.gz --database-url postgres://another`,
		Args: cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, c config.Config, db *store.DB, _ []string) error {
			chains, err := p.Chosen(ctx, c, db)
			if err != nil {
				return err
			}
			if len(chains) != 1 {
				return repute.Invalid("chain", fmt.Sprintf("%d chains are indexed", len(chains)),
					"name one with --chain")
			}
			return exportEvents(ctx, p, db, chains[0].Chain.ID, blocks, file)
		}),
	}
	p.Flags.Database(events.Flags())
	p.Flags.Chain(events.Flags())
	events.Flags().Uint64Var(&blocks.From, "from", 0, "first block; the chain's start when absent")
	events.Flags().Uint64Var(&blocks.To, "to", 0, "last block; the newest final one when absent")
	events.Flags().StringVarP(&file, "output", "o", "-", "file to write, - for standard output")
	cmd := &cobra.Command{}
	bulk.AddExport(p, cmd)
	cmd.AddCommand(events)
	return cmd
}

// exportEvents writes the file from one snapshot of the database. It prints the contents and limits of the snapshot to
// stderr, so that standard output may be the file.
func exportEvents(ctx context.Context, p *cli.Program, db *store.DB, chain uint64, blocks repute.BlockRange,
	file string) error {
	var result archive.ExportResult
	err := p.WriteFile(file, func(w io.Writer) (err error) {
		result, err = archive.Export(ctx, db, chain, blocks, w)
		return err
	})
	if err != nil {
		return err
	}
	whole := ""
	switch {
	case result.Missing > 0:
		whole = fmt.Sprintf("; %d events are known to be missing or wait for a missing one, and are of an import of it too",
			result.Missing)
	case !result.Named:
		whole = fmt.Sprintf("; serve cannot follow on from it, since the hash of block %d is not known: end it at a block with events by --to, or export after serve followed the chain", result.Blocks.To)
	case !result.Whole:
		whole = "; this alone is not enough to follow on from, since it is not all blocks from the chain's start on"
	}
	fmt.Fprintf(p.Stderr, "exported %d events of blocks %d to %d of chain %d%s\n", result.Events, result.Blocks.From,
		result.Blocks.To, chain, whole)
	return nil
}

// importEventsCommand returns `repute import`. It creates a database where there is none, once the chain is known.
func importEventsCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE [--chain NAME]",
		Short: "store a snapshot, or recorded logs, of a chain that is not followed yet",
		Long: `Reads a snapshot that export events wrote, plain or compressed, or recorded logs:
eth_getLogs results as JSON arrays, JSONL, JSON-RPC answers or objects of arrays
("-" is standard input).

A snapshot names its chain and is stored in parts: an import that broke off is
finished by repeating it. serve follows on from a snapshot that holds everything
from the chain's start on. Recorded logs need --chain; either the whole file is
stored or nothing. Logs from before the registry's deployment are refused. Where the
chain has endpoints (--rpc), up to 50 blocks of recorded logs, and of each part of a
snapshot, are compared with it before they are stored: the parts before one that is
refused stay stored. What was stored is told as JSON.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := p.OpenInput(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			in, err := cli.Decompressed(file)
			if err != nil {
				return repute.Invalid("file", args[0]+" begins like a gzip file and is none, or is cut short",
					"give a whole file")
			}
			return importInput(cmd.Context(), p, args[0], in)
		},
	}
	p.Flags.Database(cmd.Flags())
	p.Flags.Endpoints(cmd.Flags())
	return cmd
}

// importInput determines the chain of the input from its header, the flags and the database, and imports it. It creates
// no database for an unknown chain. The header is peeked at, so that the import reads the input from its beginning.
func importInput(ctx context.Context, p *cli.Program, name string, in *bufio.Reader) error {
	c, err := p.Flags.Load()
	if err != nil {
		return err
	}
	known, snapshot := archive.SnapshotChain(in)
	need := len(p.Flags.Chains) > 0 || !archive.IsSnapshot(in)
	if snapshot {
		c.Complete(known)
	}
	if _, err := p.OneChain(c); need && err != nil && !c.HasDatabase() {
		return err
	}
	return p.WithAnyStore(ctx, func(_ config.Config, db *store.DB) error {
		var chain *repute.Chain
		if need {
			stored, err := query.Chains(ctx, db)
			if err != nil {
				return err
			}
			found, err := p.OneChain(c, cli.Plain(stored)...)
			if err != nil {
				return err
			}
			chain = &found
		}
		compare, stop, err := comparing(p, c, chain, known)
		if err != nil {
			return err
		}
		defer stop()
		result, err := importFrom(ctx, p, c, db, chain, in, compare)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return p.PrintJSON(importReport(result))
	})
}

// importReport is the output of import.
type importReport struct {
	Events     int            `json:"events"`     // new logs stored
	Duplicates int            `json:"duplicates"` // logs that were stored already
	Agents     int            `json:"agents"`     // of the chain afterwards
	Applied    map[string]int `json:"applied"`    // new logs that took effect, by event
	Waiting    map[string]int `json:"waiting"`    // new logs that wait for a missing one, by kind of event
	Pending    int            `json:"pending"`    // such logs of the chain afterwards
}

// importFrom imports a snapshot in chunks with progress, or recorded logs in one transaction.
// Recorded logs need chain. Chunks that were committed stay when a later one fails, and are skipped when the import is
// repeated.
func importFrom(ctx context.Context, p *cli.Program, c config.Config, db *store.DB, chain *repute.Chain,
	in *bufio.Reader, compare archive.Compare) (importdb.ImportResult, error) {
	if !archive.IsSnapshot(in) {
		return archive.Import(ctx, db, *chain, in, compare)
	}
	screen := newScreen(p, c)
	defer screen.Close()
	var show func(time.Time, progress.Sample)
	told := func(s archive.SnapshotProgress) {
		if show == nil {
			show = progress.NewReporter(screen, c.Logger(screen)).Chain(s.Chain.Name)
		}
		show(time.Now(), progress.Imported(s.Blocks, s.Block, s.Events))
	}
	return archive.ImportSnapshot(ctx, db, in, archive.SnapshotOptions{Chain: chain, Progress: told, Compare: compare})
}

// comparing returns the comparison of an import with the first endpoint that answers, of those configured for its
// chain; nil without any. When none answers it prints that and accepts the import, because imported blocks are compared
// again once the chain is followed. A difference is repute.ErrInvalid and refuses the import at once: another endpoint
// is not asked for a better answer. The returned function closes the endpoints.
func comparing(p *cli.Program, c config.Config, chain *repute.Chain, of repute.Chain) (archive.Compare, func(), error) {
	if chain != nil {
		of = *chain
	}
	at := slices.IndexFunc(c.Chains, func(own config.ChainConfig) bool { return own.Calls(of) })
	if at < 0 || len(c.Chains[at].RPC) == 0 {
		return nil, func() {}, nil
	}
	nodes, stop, err := witnesses(c.Chains[at].RPC)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, blocks []repute.Block) error {
		proven, err := ofChain(ctx, p, nodes, of.ID)
		for _, n := range proven {
			if err = archive.CompareWith(n)(ctx, blocks); err == nil || errors.Is(err, repute.ErrInvalid) {
				return err
			}
		}
		if ctx.Err() != nil || errors.Is(err, repute.ErrInvalid) {
			return err
		}
		fmt.Fprintln(p.Stderr, "the blocks are not compared with the chain:", err)
		return nil
	}, stop, nil
}
