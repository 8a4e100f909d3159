package files

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/store/denydb"
	"repute/store/docstats"
)

// DocumentsCommand returns the command that shows the queue of documents and has some read
// again.
func DocumentsCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{Use: "documents", Short: "look after the files that agents and feedback point to"}
	cmd.AddCommand(documentsStatusCommand(p), documentsRetryCommand(p), documentsDenyCommand(p),
		documentsAllowCommand(p),
		documentsDeniedCommand(p))
	for _, sub := range cmd.Commands() {
		p.Flags.Database(sub.Flags())
	}
	return cmd
}

// DocumentsStatus is the output of documents status.
type DocumentsStatus struct {
	// Total counts all URIs. Planned are those with a time of their next fetch, Due those of them whose time has come.
	Total    int64                           `json:"total"`
	Due      int64                           `json:"due"`
	Planned  int64                           `json:"planned"`
	Statuses map[repute.DocumentStatus]int64 `json:"statuses"`
	// Reasons counts the URIs whose last fetch failed, by the codes that documents retry takes with --reason.
	Reasons map[string]int64 `json:"reasons"`
	Queue   []queueStatus    `json:"queue"`
	Hosts   []hostStatus     `json:"hosts"`
}

// queueStatus is a rank of the queue: workers take documents of a lower rank first. Dead ones failed permanently or too
// often, and are fetched again only on request. OldestDue is null when nothing of the rank is due.
type queueStatus struct {
	Rank      string     `json:"rank"`
	Planned   int64      `json:"planned"`
	Due       int64      `json:"due"`
	Dead      int64      `json:"dead"`
	OldestDue *time.Time `json:"oldestDue"`
}

// hostStatus is one of the hosts with most documents that wait or failed. Host is empty for URIs without one, such as
// those of ipfs. Silent is the number of its claims in a row that ended without an answer.
type hostStatus struct {
	Host   string `json:"host"`
	Due    int64  `json:"due"`
	Failed int64  `json:"failed"`
	Dead   int64  `json:"dead"`
	Silent int64  `json:"silentTurns"`
}

// documentsStatusCommand returns `repute documents status`. It reads every URI, which takes seconds on a large index.
func documentsStatusCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status",
		Short: "count documents by state, reason, place in the queue and host",
		Args:  cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, _ config.Config, db *store.DB, _ []string) error {
			s, err := readDocumentsStatus(ctx, db)
			if err != nil {
				return err
			}
			if p.JSON {
				return p.PrintLine(s)
			}
			return s.print(p.Stdout, time.Now())
		}),
	}
	p.JSONFlag(cmd.Flags(), "one JSON object")
	return cmd
}

// readDocumentsStatus reads the status of the document queue. Its parts are read one after the other, so that their
// counts may differ by what workers fetch meanwhile.
func readDocumentsStatus(ctx context.Context, db *store.DB) (s DocumentsStatus, err error) {
	stats, err := docstats.ReadURIStats(ctx, db)
	if err != nil {
		return s, err
	}
	s = DocumentsStatus{Total: stats.Total, Due: stats.Due, Planned: stats.Planned, Statuses: stats.ByStatus,
		Reasons: stats.ByReason,
		Queue:   []queueStatus{}, Hosts: []hostStatus{}}
	queue, err := docstats.ReadQueue(ctx, db)
	if err != nil {
		return s, err
	}
	for _, q := range queue {
		row := queueStatus{Rank: q.Rank.String(), Planned: q.Planned, Due: q.Due, Dead: q.Dead}
		if !q.Oldest.IsZero() {
			row.OldestDue = &q.Oldest
		}
		s.Queue = append(s.Queue, row)
	}
	hosts, err := docstats.WorstHosts(ctx, db)
	for _, h := range hosts {
		s.Hosts = append(s.Hosts, hostStatus{h.Host, h.Due, h.Failed, h.Dead, h.Silent})
	}
	return s, err
}

// print prints the status as tables.
func (s DocumentsStatus) print(w io.Writer, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "URIs\t%d\tdue %d\tplanned %d\tof agents, proofs and files of feedback\n", s.Total, s.Due, s.Planned)
	for _, status := range slices.Sorted(maps.Keys(s.Statuses)) {
		fmt.Fprintf(t, "  %s\t%d\n", status, s.Statuses[status])
	}
	fmt.Fprintln(t, "\nqueue\tdue\tplanned\tdead\toldest due")
	for _, q := range s.Queue {
		oldest := "-"
		if q.OldestDue != nil {
			oldest = now.Sub(*q.OldestDue).Round(time.Second).String()
		}
		fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t%s\n", q.Rank, q.Due, q.Planned, q.Dead, oldest)
	}
	if len(s.Reasons) > 0 {
		fmt.Fprintln(t, "\nfailures")
		for _, reason := range slices.Sorted(maps.Keys(s.Reasons)) {
			fmt.Fprintf(t, "  %s\t%d\n", reason, s.Reasons[reason])
		}
	}
	if len(s.Hosts) > 0 {
		fmt.Fprintln(t, "\nhosts\tdue\tfailed\tdead\tturns without an answer")
		for _, h := range s.Hosts {
			fmt.Fprintf(t, "  %s\t%d\t%d\t%d\t%d\n", cmp.Or(h.Host, "(none)"), h.Due, h.Failed, h.Dead, h.Silent)
		}
	}
	return t.Flush()
}

// documentsDeniedCommand returns `repute documents denied`. The list is not paged: an operator wrote each entry.
func documentsDeniedCommand(p *cli.Program) *cobra.Command {
	return &cobra.Command{
		Use:   "denied",
		Short: "list what is denied, the newest first",
		Args:  cobra.NoArgs,
		RunE: p.OnStore(func(ctx context.Context, _ config.Config, db *store.DB, _ []string) error {
			list, err := denydb.ListDenied(ctx, db)
			if err != nil {
				return err
			}
			t := cli.NewTable(p.Stdout)
			for _, d := range list {
				t.Row(d.Kind, d.Value, d.Created.UTC().Format(time.RFC3339), oneLine(d.Reason))
			}
			return t.Flush()
		}),
	}
}

// oneLine returns a text with all white space replaced by single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
