package intents

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/intent"
	"repute/intent/sentence"
	"repute/internal/indexclient"
	"repute/manifest/agentjson"
	"repute/resolver/wellknown"
)

// findFlags are those of repute intent find.
type findFlags struct {
	from  []string
	index string
	kind  string
	top   int
}

// findCommand returns `repute intent find`. The flags of the database are there for the hosts and gateways of the
// configuration; no database is opened.
func findCommand(p *cli.Program) *cobra.Command {
	var f findFlags
	cmd := &cobra.Command{
		Use:   `find "TEXT" --from FILE|DOMAIN | --index URL [--top 5] [--kind intent]`,
		Short: "find intents by what they mean",
		Long: `Compares a text with the intents of agent.json files, by the meaning of their names and
descriptions and by common words, and prints the best. A first match that is not sure is
marked unsure: ask which one is meant, or whether any is. With --from the texts do not leave
this computer. With --index a server searches all manifests and agents that it has indexed.`,
		Example: `  repute intent find "get me a plane ticket" --from travel.example --from agent.json
  repute intent find "get me a plane ticket" --index http://127.0.0.1:8080`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.find(cmd.Context(), p, args[0])
		},
	}
	p.Flags.Database(cmd.Flags())
	p.Flags.Reading(cmd.Flags())
	set := cmd.Flags()
	set.StringArrayVar(&f.from, "from", nil, "an agent.json, or a domain that serves one; may be repeated")
	set.StringVar(&f.index, "index", "", "URL of an index that is searched in place of --from (INDEXER_URL)")
	set.IntVar(&f.top, "top", 5, "how many matches are printed, 1 to 100")
	set.StringVar(&f.kind, "kind", "", "only items of this kind: intent, skill, tool or class")
	p.JSONFlag(set, "print one JSON object")
	return cmd
}

// foundJSON is what repute intent find --json prints.
type foundJSON struct {
	// Sure reports whether the first match may be acted on without asking. Margin is the score of the first match minus
	// that of the next one, or its own score without a next one; see package intent for the bounds of both.
	Sure    bool        `json:"sure"`
	Margin  float64     `json:"margin"`
	Matches []matchJSON `json:"matches"`
}

// matchJSON is an offer that matches. Score decides the order: it is Similarity, -1 to 1, and up to 0.15 for words in
// common.
type matchJSON struct {
	// ID is NAME@ORIGIN, as repute intent run takes it; NAME@AGENT of an offer of agents.
	ID         string      `json:"id"`
	Kind       intent.Kind `json:"kind"`
	Name       string      `json:"name"`
	Score      float64     `json:"score"`
	Similarity float64     `json:"similarity"`
}

// find searches manifests or an index.
func (f *findFlags) find(ctx context.Context, p *cli.Program, text string) error {
	kinds := []intent.Kind{"", intent.KindIntent, intent.KindSkill, intent.KindTool, intent.KindClass}
	switch {
	case f.top < 1 || f.top > 100:
		return repute.Invalid("top", fmt.Sprintf("is %d", f.top), "1 to 100")
	case !slices.Contains(kinds, intent.Kind(f.kind)):
		return repute.Invalid("kind", fmt.Sprintf("%.40q is none", f.kind), "intent, skill, tool or class")
	}
	if f.index != "" && len(f.from) > 0 {
		return repute.Invalid("index", "is given with --from", "one of the two")
	}
	if len(f.from) == 0 {
		return f.ask(ctx, p, text)
	}
	return f.search(ctx, p, text)
}

// ask has an index search. INDEXER_URL of the environment is used only without --from: a text that is compared on this
// computer MUST NOT leave it because a variable is set.
func (f *findFlags) ask(ctx context.Context, p *cli.Program, text string) error {
	base := cmp.Or(f.index, os.Getenv("INDEXER_URL"))
	if base == "" {
		return repute.Invalid("from", "is missing", "a file or a domain, or --index with the URL of an index")
	}
	index, err := indexclient.New(base, nil)
	if err != nil {
		return err
	}
	r, err := index.Intents(ctx, text, f.kind, f.top)
	if err != nil {
		return err
	}
	out := foundJSON{Sure: !r.Unsure, Margin: r.Margin, Matches: []matchJSON{}}
	for _, m := range r.Items {
		out.Matches = append(out.Matches, matchJSON{m.Name + "@" + cmp.Or(m.Domain, m.Agent), intent.Kind(m.Kind),
			m.Name, m.Score,
			m.Similarity})
	}
	return f.print(p, &out)
}

// search compares the text with the intents of the manifests on this computer. The model is embedded in the program, so
// that nothing is fetched for it.
func (f *findFlags) search(ctx context.Context, p *cli.Program, text string) error {
	items, err := f.items(ctx, p)
	if err != nil {
		return err
	}
	encoder, err := sentence.New()
	if err != nil {
		return err
	}
	index, err := intent.New(encoder)
	if err != nil {
		return err
	}
	if err := index.Add(ctx, items...); err != nil {
		return err
	}
	query := intent.Query{Text: text, Limit: f.top}
	if f.kind != "" {
		query.Filter = func(e intent.Entry) bool { return e.Kind == intent.Kind(f.kind) }
	}
	r, err := index.Search(ctx, query)
	if err != nil {
		return err
	}
	out := foundJSON{Sure: r.Sure, Margin: r.Margin, Matches: []matchJSON{}}
	for _, m := range r.Matches {
		out.Matches = append(out.Matches, matchJSON{m.ID, m.Kind, m.Name, m.Score, m.Similarity})
	}
	return f.print(p, &out)
}

// print writes the matches.
func (f *findFlags) print(p *cli.Program, r *foundJSON) error {
	return p.Show(r, func(w io.Writer) error {
		t := cli.NewTable(w, "SCORE", "MARGIN", "KIND", "INTENT")
		for i, m := range r.Matches {
			margin := ""
			if i == 0 {
				margin = fmt.Sprintf("%.3f", r.Margin)
				if !r.Sure {
					margin += " unsure"
				}
			}
			t.Row(fmt.Sprintf("%.3f", m.Score), margin, cli.Visible(string(m.Kind)), cli.Visible(m.ID))
		}
		return t.Flush()
	})
}

// items returns the intents of the files and domains of --from. One file with errors ends the command, so that a
// missing match is never due to a file that was skipped.
func (f *findFlags) items(ctx context.Context, p *cli.Program) (out []intent.Item, err error) {
	for _, name := range f.from {
		raw, host, err := readManifest(ctx, p, name)
		if err != nil {
			return nil, err
		}
		parsed, problems := agentjson.Parse(raw, agentjson.Options{Host: host})
		if repute.HasErrors(problems) {
			return nil, repute.Invalid("from", fmt.Sprintf("%.80q is no agent.json without errors", name),
				"see repute manifest check")
		}
		out = append(out, itemsOf(&parsed)...)
	}
	return out, nil
}

// readManifest reads a file, or the manifest of a domain with the host that served it. It is the beginning of a file
// that is too large, which Parse then refuses. host is "" for a file: whose manifest it is is not proven.
func readManifest(ctx context.Context, p *cli.Program, name string) (raw []byte, host string, err error) {
	if file, err := os.Open(name); err == nil {
		defer file.Close()
		raw, err = io.ReadAll(io.LimitReader(file, agentjson.MaxBytes+1))
		if err != nil {
			return nil, "", repute.Invalid("from", err.Error(), "a readable file")
		}
		return raw, "", nil
	}
	client, err := p.Resolver()
	if err != nil {
		return nil, "", err
	}
	defer client.Close()
	found, err := wellknown.New(client).Manifest(ctx, name, wellknown.Known{})
	if err != nil {
		return nil, "", fmt.Errorf("%.80q is no file, and no domain with a manifest: %w", name, err)
	}
	return found.Bytes, found.Host, nil
}

// itemsOf are the intents of a manifest.
func itemsOf(m *agentjson.Manifest) (out []intent.Item) {
	for _, in := range m.Intents {
		item := intent.Item{ID: in.Name + "@" + m.Origin, Kind: intent.KindIntent, Name: in.Name,
			Description: in.Description}
		for _, p := range in.Parameters {
			item.Parameters = append(item.Parameters, strings.TrimSpace(p.Name))
		}
		out = append(out, item)
	}
	return out
}
