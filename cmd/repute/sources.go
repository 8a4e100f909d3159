package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/config"
	"repute/cmd/repute/internal/service"
	"repute/store"
	"repute/store/query"
	"repute/store/trustdb"
	"repute/trust/engine"
	"repute/trust/source"
	sourceread "repute/trust/source/read"
)

// sourcesCommand returns `repute sources` with its subcommands.
func sourcesCommand(p *cli.Program) *cobra.Command {
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
	var asJSON, file bool
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
				if err != nil || asJSON {
					return errors.Join(err, printIf(p, asJSON && err == nil, views))
				}
				return printSources(p, views, time.Now())
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, a list of sources")
	cmd.Flags().BoolVar(&file, "file", false, "print the file of sources in force, to change a copy of it")
	return cmd
}

// printIf prints a value as JSON if wanted.
func printIf(p *cli.Program, wanted bool, v any) error {
	if !wanted {
		return nil
	}
	return p.PrintJSON(v)
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

// listSources returns the sources that count on the chosen chains, with their states by the last runs.
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
// source.
func lastSources(ctx context.Context, db *store.DB, chain uint64) (past source.Past, run trustdb.Run, err error) {
	run, err = trustdb.ReadRun(ctx, db, chain, 0)
	switch {
	case errors.Is(err, repute.ErrNotFound):
		return past, run, nil
	case err != nil, run.Credentials == common.Hash{}:
		return past, run, err
	}
	if err := json.Unmarshal([]byte(run.Readings), &past.States); err != nil {
		return past, run, fmt.Errorf("readings of run %d of chain %d: %w", run.Run, chain, err)
	}
	body, err := trustdb.ReadInput(ctx, db, run.Credentials)
	if errors.Is(err, repute.ErrNotFound) {
		return past, run, nil
	}
	if err == nil {
		past.Credentials, err = source.Decode(body)
	}
	return past, run, err
}

// printSources prints the sources as a table.
func printSources(p *cli.Program, views []sourceView, now time.Time) error {
	if len(views) == 0 {
		fmt.Fprintln(p.Stdout, "no source counts on any chain that is indexed")
		return nil
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "CHAIN\tSOURCE\tCLASS\tWEIGHT\tPRICE\tREAD ON\tHOLDERS\tSTATE")
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
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", v.ChainID, v.ID, v.Class, v.Weight, price, v.Home, v.Holders,
			state)
	}
	return w.Flush()
}

// asking has what check and verify need to read the sources of a chain.
type asking struct {
	chain   uint64
	policy  *source.Policy
	sources []*source.Source // that count on the chain and have an endpoint
	spent   []*source.Source // that are read from payments in the index
	reader  *sourceread.Reader
	past    source.Past // of run
	run     trustdb.Run // the newest one
	pruned  []string    // inputs of the run that are no longer stored
}

// ask opens a reader of the sources of the one chosen chain, calls f, and closes the reader. The policy is that of the
// configuration, or with asRun that of the chain's newest run if the run has one.
func ask(ctx context.Context, p *cli.Program, c config.Config, db *store.DB, asRun bool, f func(*asking) error) error {
	policy, err := c.Trust.Policy()
	if err != nil {
		return err
	}
	if policy == nil && !asRun {
		return errNoSources()
	}
	stored, err := query.Chains(ctx, db)
	if err != nil {
		return err
	}
	c.Complete(cli.Plain(stored)...)
	a := &asking{policy: policy}
	if a.chain, err = theChain(ctx, p, c, db); err != nil {
		return err
	}
	if a.past, a.run, err = lastSources(ctx, db, a.chain); err != nil {
		return err
	}
	if asRun {
		if err := a.takeRun(ctx, db); err != nil {
			return err
		}
	}
	endpoints := service.New(c, db, c.Logger(p.Stderr))
	defer endpoints.Close()
	reader, err := endpoints.Sources(a.policy)
	if err != nil {
		return err
	}
	a.reader = reader
	for _, s := range a.policy.On(a.chain) {
		switch home := s.ReadOn(a.chain); {
		case s.Read.Payments != nil:
			a.spent = append(a.spent, s)
		case asRun || home == a.chain || reader.Reaches(home):
			a.sources = append(a.sources, s)
		}
	}
	return f(a)
}

// takeRun sets the policy to that of the run and notes which inputs of the run are no longer stored. Without the run's
// policy the configured one stays; credentials of other sources are then reported as not checked.
func (a *asking) takeRun(ctx context.Context, db *store.DB) error {
	none := common.Hash{}
	if a.run.Credentials != none {
		_, err := trustdb.ReadInput(ctx, db, a.run.Credentials)
		if err := a.notePruned("credentials", err); err != nil {
			return err
		}
	}
	if a.run.Sources != none && (a.policy == nil || a.policy.Hash() != a.run.Sources) {
		body, err := trustdb.ReadInput(ctx, db, a.run.Sources)
		if err == nil {
			a.policy, err = source.Parse(body)
		}
		if err := a.notePruned("policy of sources", err); err != nil {
			return err
		}
	}
	if a.policy == nil {
		return errNoSources()
	}
	return nil
}

// notePruned notes an input that is not stored, and returns any other error of reading it.
func (a *asking) notePruned(what string, err error) error {
	if errors.Is(err, repute.ErrNotFound) {
		a.pruned = append(a.pruned, fmt.Sprintf("the %s of run %d: not stored any more", what, a.run.Run))
		return nil
	}
	return err
}

// answerView is the answer of one source about one address.
type answerView struct {
	Source string `json:"source"`
	Says   string `json:"says"` // yes, no, unknown or off
	Weight string `json:"weight"`
	// Why is the reason for which a credential gives no weight, for yes, and for which there is no answer, for unknown
	// and off. It is "" when the credential gives weight, and for no.
	Why        string             `json:"why,omitempty"`
	Credential *source.Credential `json:"credential"`
}

// sourcesCheckCommand returns `repute sources check`.
func sourcesCheckCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check ADDRESS [--chain NAME --rpc URL]",
		Short: "ask all sources of a chain about one address now, and tell which weight it has and why",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address, err := repute.ParseAddress("address", args[0])
			if err != nil {
				return err
			}
			return p.WithStore(cmd.Context(), func(c config.Config, db *store.DB) error {
				return ask(cmd.Context(), p, c, db, false, func(a *asking) error {
					return checkAddress(cmd.Context(), p, a, address, asJSON)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checkView is what check prints as JSON.
type checkView struct {
	ChainID uint64         `json:"chainId"`
	Address common.Address `json:"address"`
	Block   uint64         `json:"block"`
	Weight  string         `json:"weight"` // of all sources together
	Sources []answerView   `json:"sources"`
}

// checkAddress reads all sources about one address and prints the answers.
func checkAddress(ctx context.Context, p *cli.Program, a *asking, address common.Address, asJSON bool) error {
	at, err := a.reader.Now(ctx, a.chain, a.sources)
	if err != nil {
		return err
	}
	readings, err := a.reader.Read(ctx, a.chain, at, a.sources, []common.Address{address}, a.past)
	if err != nil {
		return err
	}
	now := uint64(max(0, at.Time.Unix()))
	v := checkView{ChainID: a.chain, Address: address, Block: at.Number, Weight: "0.00", Sources: []answerView{}}
	var all []source.Credential
	for i := range readings {
		held := a.policy.Settle(a.past.Credentials, &readings[i])
		held = slices.DeleteFunc(held, func(c source.Credential) bool { return c.Rater != address })
		all = append(all, held...)
		v.Sources = append(v.Sources, answerOf(a.policy, &readings[i], held, now))
	}
	for _, s := range a.spent {
		r := lastReading(s, a.past, address)
		all = append(all, r.Credentials...)
		v.Sources = append(v.Sources, answerOf(a.policy, &r, r.Credentials, now))
	}
	for _, r := range a.policy.Raters(all, now) {
		v.Weight = r.Weight.Decimal(2)
	}
	if asJSON {
		return p.PrintJSON(v)
	}
	return printCheck(p, v)
}

// lastReading is what the last run found of one address by a source that is read from the index.
func lastReading(s *source.Source, past source.Past, address common.Address) source.Reading {
	r := source.Reading{State: source.State{Source: s.ID, Status: source.StatusIncomplete,
		Reason: "no epoch has read it yet"}, Unknown: []common.Address{address}}
	for _, st := range past.States {
		if st.Source == s.ID {
			r = source.Reading{State: st}
		}
	}
	for _, c := range past.Credentials {
		if c.Source == s.ID && c.Rater == address {
			r.Credentials = append(r.Credentials, c)
		}
	}
	return r
}

// answerOf converts the reading of one source about one address. held are the address's credentials after Settle, and
// now is the time in Unix seconds at which they are counted.
func answerOf(policy *source.Policy, r *source.Reading, held []source.Credential, now uint64) answerView {
	v := answerView{Source: r.Source, Says: "no", Weight: "0.00"}
	if len(held) > 0 {
		v.Credential, v.Says, v.Why = &held[0], "yes", string(policy.Counts(&held[0], now))
		if v.Why == "" {
			v.Weight = held[0].Weight.Decimal(2)
		}
	}
	switch {
	case r.Status == source.StatusOff:
		v.Says, v.Why = "off", r.Reason
	case len(r.Unknown) > 0:
		v.Says, v.Why = "unknown", r.Reason
	}
	return v
}

// printCheck prints the answers about one address as a table.
func printCheck(p *cli.Program, v checkView) error {
	fmt.Fprintf(p.Stdout, "%s on chain %d at block %d: weight %s from sources\n", v.Address, v.ChainID, v.Block, v.Weight)
	w := tabwriter.NewWriter(p.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "SOURCE\tSAYS\tWEIGHT\tISSUED\tWHY")
	for _, s := range v.Sources {
		issued := ""
		if s.Credential != nil {
			issued = time.Unix(int64(s.Credential.Issued), 0).UTC().Format(time.DateOnly)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", s.Source, s.Says, s.Weight, issued, cli.Visible(s.Why))
	}
	return w.Flush()
}

// sourcesVerifyCommand returns `repute sources verify`.
func sourcesVerifyCommand(p *cli.Program) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify [--chain NAME --rpc URL]",
		Short: "read the stored credentials of a chain's newest run again, and tell what differs",
		Long: `Reads each stored credential again at the block at which it was read, by the policy of the run.
The endpoints must have the state of that block; attestations are also compared by their own
times. Credentials by payments are compared with the verified payments in the index. Credentials
that cannot be read again, and inputs that were pruned, count as not checked.

Exit codes: 0 all are confirmed, 1 some differ, 2 not everything could be checked.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.WithStore(cmd.Context(), func(c config.Config, db *store.DB) error {
				return ask(cmd.Context(), p, c, db, true, func(a *asking) error {
					return verifySources(cmd.Context(), p, db, a, asJSON)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// verifySpent compares the credentials by payments with those that the verified payments give now.
func verifySpent(ctx context.Context, db *store.DB, a *asking, out *sourceread.Checked) error {
	for _, s := range a.spent {
		held := slices.DeleteFunc(slices.Clone(a.past.Credentials), func(c source.Credential) bool {
			return c.Source != s.ID || c.Version != s.Version
		})
		if len(held) == 0 {
			continue
		}
		found, err := engine.Spent(ctx, db, a.run, s)
		if err != nil {
			return err
		}
		out.Compare(s, held, &found)
	}
	return nil
}

// verifySources reads the stored credentials of the newest run again and prints the differences.
func verifySources(ctx context.Context, p *cli.Program, db *store.DB, a *asking, asJSON bool) error {
	if !a.reader.Reaches(a.chain) {
		return repute.Invalid("rpc", fmt.Sprintf("no endpoint of chain %d is configured", a.chain),
			"--chain NAME --rpc URL")
	}
	onChains := a.past
	onChains.Credentials = slices.DeleteFunc(slices.Clone(a.past.Credentials), func(c source.Credential) bool {
		return slices.ContainsFunc(a.spent, func(s *source.Source) bool { return s.ID == c.Source && s.Version == c.Version })
	})
	found, err := a.reader.Verify(ctx, a.chain, a.run.Block, a.sources, onChains)
	if err != nil {
		return err
	}
	if err := verifySpent(ctx, db, a, &found); err != nil {
		return err
	}
	found.Unchecked = append(found.Unchecked, a.pruned...)
	if asJSON {
		err = p.PrintJSON(found)
	} else {
		for _, d := range found.Differences {
			fmt.Fprintf(p.Stdout, "%s of %s at block %d: %s\n", d.Source, d.Rater, d.Block, d.What)
		}
		fmt.Fprintf(p.Stdout, "%s of run %d compared, %s\n", cli.Count(found.Credentials, "credential"), a.run.Run,
			cli.Count(len(found.Differences), "difference"))
		for _, what := range found.Unchecked {
			fmt.Fprintln(p.Stdout, "not checked:", strings.TrimSpace(what))
		}
	}
	switch {
	case err != nil:
		return err
	case len(found.Differences) > 0:
		return cli.ExitError{Code: codeDiffers, Text: "stored credentials differ from the chain in " +
			cli.Count(len(found.Differences), "place")}
	case len(found.Unchecked) > 0:
		return cli.ExitError{Code: codeUnchecked, Text: "not everything could be checked"}
	}
	return nil
}
