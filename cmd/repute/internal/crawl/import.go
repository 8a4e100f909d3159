// Package crawl has the commands by which an operator guides the crawl of agent.json manifests: manifest import lists
// domains that no agent's file names, and manifest probe lets the crawl measure an endpoint of a domain.
//
// Both only write rows. The process with the role documents reads them, asks each domain politely and judges what it
// answers (package indexer/manifests). A list is checked as a whole before any domain of it is stored, and then stored
// in parts; importing it again adds what is missing.
package crawl

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/resolver"
	"repute/store"
	"repute/store/column"
	"repute/store/manifestdb"
)

const (
	// importMost is how many domains one statement adds.
	// importMost is how many domains one statement adds. Each part is stored by itself, so that a command that breaks
	// off has stored a beginning of the list.
	importMost = 5000
	// maxDomains bounds a list: each of its domains is asked every day.
	maxDomains = 1_000_000
)

// ImportCommand returns the command that lists domains whose manifests are fetched.
func ImportCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import FILE|-",
		Short: "list domains whose agent.json is fetched, besides those that agents' files name",
		Long: `List domains whose agent.json is fetched, besides those that agents' files name: one
domain a line, from a file or standard input (-), also with gzip. Empty lines and what
follows # are skipped. Nothing is imported where a line is no domain.`,
		Example: "  repute manifest import domains.txt",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			domains, err := readList(p, args[0])
			if err != nil {
				return err
			}
			return p.WithStore(cmd.Context(), func(_ config.Config, db *store.DB) error {
				added, err := importAll(cmd.Context(), db, domains)
				if err == nil {
					fmt.Fprintf(p.Stdout, "%d domains, %d new\n", len(domains), added)
				}
				return err
			})
		},
	}
	p.Flags.Database(cmd.Flags())
	return cmd
}

// readList reads the domains of a file. The whole list is held in memory, which maxDomains bounds.
func readList(p *cli.Program, name string) ([]string, error) {
	in, err := p.OpenInput(name)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	text, err := cli.Decompressed(in)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return parseList(text)
}

// parseList returns the domains of a list in the form that they are stored, each once. repute.ErrInvalid names the
// first line that is no domain. A line longer than 64 KiB is an error of the reader, not of a domain.
func parseList(r io.Reader) (domains []string, err error) {
	seen := map[string]bool{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		domain := domainOf(line)
		if domain == "" {
			return nil, repute.Invalid("file", fmt.Sprintf("line %d: %.100q is no domain", n, line),
				"a public host name without scheme, port and path, e.g. shop.example.com")
		}
		if !seen[domain] {
			seen[domain] = true
			domains = append(domains, domain)
		}
		if len(domains) > maxDomains {
			return nil, repute.Invalid("file", fmt.Sprintf("has more than %d domains", maxDomains), "a shorter list")
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the list: %w", err)
	}
	return domains, nil
}

// domainOf returns the one spelling of a domain; "" for a text that is none, such as an address or a host with a port.
// The checks before and after resolver.HostOf are for what it would accept as a part of a URL: a port, a path, a user,
// and a last label that begins with a digit, which makes an address of the host.
func domainOf(text string) string {
	if strings.ContainsAny(text, "/:?@\\ \t") {
		return ""
	}
	host := resolver.HostOf("https://" + text)
	last := host[strings.LastIndexByte(host, '.')+1:]
	if len(host) > column.LongestHost || !strings.Contains(host, ".") || last[0] >= '0' && last[0] <= '9' {
		return ""
	}
	return host
}

// importAll adds domains and returns how many are new. The parts are stored in order. On an error added counts those
// before it, which stay.
func importAll(ctx context.Context, db *store.DB, domains []string) (added int, err error) {
	for len(domains) > 0 && err == nil {
		n := min(len(domains), importMost)
		var more int
		more, err = manifestdb.Import(ctx, db, domains[:n])
		added, domains = added+more, domains[n:]
	}
	return added, err
}
