package scores

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/store/scoredb"
	"repute/trust/source"
)

// SourcesCommand returns `repute sources` with its subcommands. The flags of endpoints are for check and verify; list
// uses them only to say which sources cannot be reached.
func SourcesCommand(p *cli.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sources",
		Short: "show which facts about addresses give raters a first weight, and check them",
		Long: `A source is a fact about an address that is costly to forge. docs/reference/sources.md
describes the sources, their file and their limits.`,
	}
	cmd.AddCommand(sourcesListCommand(p), sourcesCheckCommand(p), sourcesVerifyCommand(p))
	for _, sub := range cmd.Commands() {
		p.Flags.Database(sub.Flags())
		p.Flags.Endpoints(sub.Flags())
	}
	return cmd
}

// errNoSources returns the error for a configuration without sources.
func errNoSources() error {
	return repute.Invalid("trust.sources", "is none: no source counts", "default, or the path of a file")
}

// sourceView is what `sources list` prints about a source on one chain.
type sourceView struct {
	ChainID uint64        `json:"chainId"`
	ID      string        `json:"id"`
	Name    string        `json:"name"`
	Issuer  string        `json:"issuer"`
	Meaning string        `json:"meaning"`
	Class   source.Class  `json:"class"`
	Weight  string        `json:"weight"`
	Price   *source.Price `json:"price"`     // null: no price is published
	Home    uint64        `json:"homeChain"` // chain on which it is read
	// State is the status of the last run's reading: ok, off or incomplete. It is unread when the last run did not read
	// the source, and unreachable when in addition no endpoint of the home is configured.
	State  string     `json:"state"`
	Reason string     `json:"reason,omitempty"` // of a state other than ok and unread
	Block  uint64     `json:"block,omitempty"`  // at which it was read, 0 when unread
	Time   *time.Time `json:"time"`             // of Block, null when unread
	// Holders is how many raters have a credential that has not lapsed, by the last run.
	Holders int `json:"holders"`
}

// sourcesListCommand returns `repute sources list`.
func sourcesListCommand(p *cli.Program) *cobra.Command {
	var file bool
	cmd := &cobra.Command{
		Use:   "list [--chain NAME]",
		Short: "show what counts on all stored chains or on one, what it weighs, and when it was read last",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file {
				return printSourcesFile(p)
			}
			return p.WithStore(cmd.Context(), func(c config.Config, db *store.DB) error {
				views, err := listSources(cmd.Context(), p, c, db)
				if err != nil {
					return err
				}
				return p.Show(views, func(w io.Writer) error { return printSources(w, views, time.Now()) })
			})
		},
	}
	p.JSONFlag(cmd.Flags(), "print JSON, a list of sources")
	cmd.Flags().BoolVar(&file, "file", false, "print the file of sources in force, to change a copy of it")
	return cmd
}

// printSourcesFile prints the file of sources that the configuration names.
func printSourcesFile(p *cli.Program) error {
	c, err := p.Flags.Load()
	if err != nil {
		return err
	}
	text, err := c.Trust.SourcesFile()
	if err == nil && text == nil {
		err = errNoSources()
	}
	if err == nil {
		_, err = p.Stdout.Write(text)
	}
	return err
}

// listSources returns the sources that count on the chosen chains, with their states by the last runs. It asks no node:
// states and holders are what the engine stored.
func listSources(ctx context.Context, p *cli.Program, c config.Config, db *store.DB) ([]sourceView, error) {
	policy, err := c.Trust.Policy()
	if err != nil || policy == nil {
		return []sourceView{}, err
	}
	chains, err := p.Chosen(ctx, c, db)
	if err != nil {
		return nil, err
	}
	reachable, err := c.Reachable()
	if err != nil {
		return nil, err
	}
	out := []sourceView{}
	for _, chain := range chains {
		past, _, err := lastSources(ctx, db, chain.Chain.ID)
		if err != nil {
			return nil, err
		}
		for _, s := range policy.On(chain.Chain.ID) {
			v := viewOf(s, chain.Chain.ID, past)
			if len(reachable[v.Home]) == 0 && v.State == "unread" && v.Home != chain.Chain.ID {
				v.State, v.Reason = "unreachable", fmt.Sprintf("no endpoint of chain %d is configured", v.Home)
			}
			out = append(out, v)
		}
	}
	return out, nil
}

// viewOf returns the view of a source on a chain. past is the result of the last run's readings.
func viewOf(s *source.Source, chain uint64, past source.Past) sourceView {
	v := sourceView{ChainID: chain, ID: s.ID, Name: s.Name, Issuer: s.Issuer, Meaning: s.Meaning, Class: s.Class,
		Weight: s.Weight.Decimal(2), Price: s.Price, Home: s.ReadOn(chain), State: "unread"}
	at := slices.IndexFunc(past.States, func(st source.State) bool { return st.Source == s.ID })
	if at < 0 {
		return v
	}
	state := &past.States[at]
	v.State, v.Reason, v.Block = string(state.Status), state.Reason, state.Block
	if state.Time > 0 {
		read := time.Unix(int64(state.Time), 0).UTC()
		v.Time = &read
	}
	for _, c := range past.Credentials {
		if c.Source == s.ID && c.Lapsed == 0 {
			v.Holders++
		}
	}
	return v
}

// lastSources returns the newest run of a chain with its readings and credentials, which are empty when the run read no
// source. The run is the zero value where the chain has none yet. Credentials that were pruned are left out without an
// error: no holder is counted then.
func lastSources(ctx context.Context, db *store.DB, chain uint64) (past source.Past, run scoredb.Run, err error) {
	run, err = scoredb.ReadRun(ctx, db, chain, 0)
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return past, run, nil
	case err != nil, run.Credentials == common.Hash{}:
		return past, run, err
	}
	if err := json.Unmarshal([]byte(run.Readings), &past.States); err != nil {
		return past, run, fmt.Errorf("readings of run %d of chain %d: %w", run.Run, chain, err)
	}
	body, err := scoredb.ReadInput(ctx, db, run.Credentials)
	if errors.Is(err, repute.ErrNotFound) {
		return past, run, nil
	}
	if err == nil {
		past.Credentials, err = source.Decode(body)
	}
	return past, run, err
}

// printSources prints the sources as a table.
func printSources(w io.Writer, views []sourceView, now time.Time) error {
	if len(views) == 0 {
		fmt.Fprintln(w, "no source counts on any chain that is indexed")
		return nil
	}
	t := cli.NewTable(w, "CHAIN", "SOURCE", "CLASS", "WEIGHT", "PRICE", "READ ON", "HOLDERS", "STATE")
	for _, v := range views {
		price := "unknown"
		if v.Price != nil {
			price = fmt.Sprintf("$%s (%s)", v.Price.USD.Decimal(0), v.Price.Date)
		}
		state := v.State
		if v.Time != nil {
			state += fmt.Sprintf(" at block %d, %s ago", v.Block, now.Sub(*v.Time).Round(time.Second))
		}
		if v.Reason != "" {
			state += ": " + cli.Visible(v.Reason)
		}
		t.Row(v.ChainID, v.ID, v.Class, v.Weight, price, v.Home, v.Holders, state)
	}
	return t.Flush()
}
