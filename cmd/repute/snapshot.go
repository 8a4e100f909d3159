package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/indexer/archive"
	"repute/store"
	"repute/store/importdb"
	"repute/store/query"
)

func (p *program) exportCommand() *cobra.Command {
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withStore(cmd.Context(), func(c config, db *store.DB) error {
				chains, err := p.chosen(cmd.Context(), c, db)
				if err != nil {
					return err
				}
				if len(chains) != 1 {
					return repute.Invalid("chain", fmt.Sprintf("%d chains are indexed", len(chains)), "name one with --chain")
				}
				return p.exportEvents(cmd.Context(), db, chains[0].Chain.ID, blocks, file)
			})
		},
	}
	p.flags.database(events.Flags())
	p.flags.chain(events.Flags())
	events.Flags().Uint64Var(&blocks.From, "from", 0, "first block; the chain's start when absent")
	events.Flags().Uint64Var(&blocks.To, "to", 0, "last block; the newest final one when absent")
	events.Flags().StringVarP(&file, "output", "o", "-", "file to write, - for standard output")
	cmd := &cobra.Command{Use: "export", Short: "write parts of the index to a file"}
	cmd.AddCommand(events)
	return cmd
}

// exportEvents writes the file and tells on stderr what is in it and what an import of it
// cannot be used for, so that standard output may be the file.
func (p *program) exportEvents(ctx context.Context, db *store.DB, chain uint64, blocks repute.BlockRange, file string) error {
	var result archive.ExportResult
	err := p.writeFile(file, func(w io.Writer) (err error) {
		result, err = archive.Export(ctx, db, chain, blocks, w)
		return err
	})
	if err != nil {
		return err
	}
	whole := ""
	switch {
	case result.Missing > 0:
		whole = fmt.Sprintf("; %d events are known to be missing or wait for a missing one, and are of an import of it too", result.Missing)
	case !result.Named:
		whole = fmt.Sprintf("; serve cannot follow on from it, since the hash of block %d is not known: end it at a block with events by --to, or export after serve followed the chain", result.Blocks.To)
	case !result.Whole:
		whole = "; this alone is not enough to follow on from, since it is not all blocks from the chain's start on"
	}
	fmt.Fprintf(p.stderr, "exported %d events of blocks %d to %d of chain %d%s\n", result.Events, result.Blocks.From, result.Blocks.To, chain, whole)
	return nil
}

// writeFile gives write a file that appears under its name only when it is whole.
// What is no regular file, a device or a pipe, is written to and never replaced.
func (p *program) writeFile(name string, write func(io.Writer) error) (err error) {
	if name == "-" {
		return write(p.stdout)
	}
	if at, err := filepath.EvalSymlinks(name); err == nil {
		name = at
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return writeInto(name, write)
	}
	file, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return repute.Invalid("output", err.Error(), "a file in a directory that can be written")
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, file.Close(), os.Remove(file.Name()))
		}
	}()
	if err := file.Chmod(0o644); err != nil {
		return err
	}
	if err := compressed(name, file, write); err != nil {
		return err
	}
	if err := errors.Join(file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), name)
}

// writeInto writes to what is there and stays: a device, a pipe.
func writeInto(name string, write func(io.Writer) error) error {
	file, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return repute.Invalid("output", err.Error(), "a file in a directory that can be written")
	}
	return errors.Join(compressed(name, file, write), file.Close())
}

// compressed writes through gzip where the name says so.
func compressed(name string, w io.Writer, write func(io.Writer) error) error {
	if !strings.HasSuffix(name, ".gz") {
		return write(w)
	}
	zip := gzip.NewWriter(w)
	if err := write(zip); err != nil {
		return err
	}
	return zip.Close()
}

func (p *program) importCommand() *cobra.Command {
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
			file, err := p.openInput(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			in, err := decompressed(file)
			if err != nil {
				return repute.Invalid("file", args[0]+" begins like a gzip file and is none, or is cut short", "give a whole file")
			}
			return p.importInput(cmd.Context(), args[0], in)
		},
	}
	p.flags.database(cmd.Flags())
	p.flags.endpoints(cmd.Flags())
	return cmd
}

// importInput finds out which chain the input is of, by its own word, the flags and
// what is stored, and stores it. No database is made for a chain that nobody knows.
func (p *program) importInput(ctx context.Context, name string, in *bufio.Reader) error {
	c, err := p.flags.load()
	if err != nil {
		return err
	}
	known, snapshot := archive.SnapshotChain(in)
	need := len(p.flags.chains) > 0 || !archive.IsSnapshot(in)
	if snapshot {
		c.complete(known)
	}
	if _, err := p.oneChain(c); need && err != nil && !c.hasDatabase() {
		return err
	}
	return p.withAnyStore(ctx, func(_ config, db *store.DB) error {
		var chain *repute.Chain
		if need {
			stored, err := query.Chains(ctx, db)
			if err != nil {
				return err
			}
			found, err := p.oneChain(c, plain(stored)...)
			if err != nil {
				return err
			}
			chain = &found
		}
		compare, stop, err := p.comparing(c, chain, known)
		if err != nil {
			return err
		}
		defer stop()
		result, err := p.importFrom(ctx, c, db, chain, in, compare)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return p.printJSON(encodeImport(result))
	})
}

// importReport is what import prints.
type importReport struct {
	Events     int            `json:"events"`     // new logs stored
	Duplicates int            `json:"duplicates"` // logs that were stored already
	Agents     int            `json:"agents"`     // of the chain afterwards
	Applied    map[string]int `json:"applied"`    // new logs that took effect, by event
	Waiting    map[string]int `json:"waiting"`    // new logs that wait for a missing one, by event
	Pending    int            `json:"pending"`    // such logs of the chain afterwards
}

func encodeImport(r importdb.ImportResult) importReport { return importReport(r) }

// importFrom stores a snapshot in parts, with progress, or recorded logs at once, for which
// chain must be given.
func (p *program) importFrom(ctx context.Context, c config, db *store.DB, chain *repute.Chain, in *bufio.Reader, compare archive.Compare) (importdb.ImportResult, error) {
	if !archive.IsSnapshot(in) {
		return archive.Import(ctx, db, *chain, in, compare)
	}
	screen := p.newScreen(c)
	defer screen.close()
	var show func(time.Time, sample)
	told := func(s archive.SnapshotProgress) {
		if show == nil {
			show = progress{screen, c.logger(screen)}.chain(s.Chain.Name)
		}
		show(time.Now(), imported(s.Blocks, s.Block, s.Events))
	}
	return archive.ImportSnapshot(ctx, db, in, archive.SnapshotOptions{Chain: chain, Progress: told, Compare: compare})
}

// comparing returns the comparison of an import with the first endpoint that answers, of those
// configured for its chain; nil without any. When none answers it prints that and accepts the
// import, because imported blocks are compared again once the chain is followed.
func (p *program) comparing(c config, chain *repute.Chain, of repute.Chain) (archive.Compare, func(), error) {
	if chain != nil {
		of = *chain
	}
	at := slices.IndexFunc(c.Chains, func(own chainConfig) bool { return own.calls(of) })
	if at < 0 || len(c.Chains[at].RPC) == 0 {
		return nil, func() {}, nil
	}
	nodes, stop, err := witnesses(c.Chains[at].RPC)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, blocks []repute.Block) error {
		proven, err := p.ofChain(ctx, nodes, of.ID)
		for _, n := range proven {
			if err = archive.CompareWith(n)(ctx, blocks); err == nil || errors.Is(err, repute.ErrInvalid) {
				return err
			}
		}
		if ctx.Err() != nil || errors.Is(err, repute.ErrInvalid) {
			return err
		}
		fmt.Fprintln(p.stderr, "the blocks are not compared with the chain:", err)
		return nil
	}, stop, nil
}

// openInput opens a file, or takes standard input for "-". repute.ErrInvalid where it
// cannot be read.
func (p *program) openInput(name string) (io.ReadCloser, error) {
	if name == "-" {
		return io.NopCloser(p.stdin), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, repute.Invalid("file", err.Error(), "give a readable file, or - for standard input")
	}
	return file, nil
}

// decompressed reads r, through gzip where it begins like that.
func decompressed(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	if head, _ := in.Peek(2); !bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return in, nil
	}
	zip, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	return bufio.NewReaderSize(zip, 1<<16), nil
}
