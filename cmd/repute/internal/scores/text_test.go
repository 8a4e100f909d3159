package scores

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"

	"repute"
	"repute/api/wire"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/clitest"
	"repute/cmd/repute/internal/config"
	"repute/store"
	"repute/store/rootdb"
	"repute/trust"
	"repute/trust/rating"
	"repute/trust/rootfile"
)

// run runs one of the commands of this package, without a database.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	out := &clitest.Output{}
	err := clitest.Run(t.Context(), out, func(p *cli.Program) []*cobra.Command {
		return []*cobra.Command{ScoreCommand(p), RootsCommand(p), EvidenceCommand(p), SourcesCommand(p),
			TrustCommand(p)}
	}, args...)
	return out.String(), err
}

// What is wrong with the arguments is found before a database is looked for, and said with its name.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const address = "0x00000000000000000000000000000000000000a1"
	dir := t.TempDir()
	for _, c := range []struct{ args, field string }{
		{"score replay 8453:22", "at"},
		{"score explain 8453:22 --root-set a --roots " + address, "root-set"},
		{"score explain 8453:22 --root-set A!", "set"},
		{"score explain 8453:22 --roots x", "roots"},
		{"score explain 8453:22 --roots " + address + "," + address, "roots"},
		{"roots add x --reason why", "address"},
		{"roots add " + address + " --reason why --weight 0", "weight"},
		{"roots add " + address + " --reason why --weight 1001", "weight"},
		{"roots add " + address + " --reason why --expires yesterday", "expires"},
		{"roots add " + address + " --reason why --expires 2001-01-01", "expires"},
		{"roots add " + address, "reason"},
		{"roots add " + address + " --reason why --set A!", "set"},
		{"roots add " + address + " --reason why --data-dir " + dir, "chain"},
		{"roots remove x", "address"},
		{"roots import - --set A!", "set"},
		{"evidence remove x " + address, "address"},
		{"evidence remove " + address + " x", "address"},
		{"sources check x", "address"},
		{"trust coverage --data-dir " + dir, "data-dir"},
	} {
		out, err := run(t, strings.Fields(c.args)...)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != c.field || input.Hint == "" {
			t.Errorf("%s: %v, printed %q", c.args, err, out)
		}
	}
}

// The embedded files that are printed as a start for own ones are those that are in force without own ones.
func TestPrintedFilesAreTheDefaults(t *testing.T) {
	t.Parallel()
	params, tags := rating.DefaultFiles()
	for name, want := range map[string][]byte{"params": params, "tags": tags} {
		if out, err := run(t, "score", name); err != nil || out != string(want) {
			t.Errorf("%s: %d bytes, %v", name, len(out), err)
		}
	}
	if out, err := run(t, "sources", "list", "--file"); err != nil || !strings.Contains(out, "sources:") {
		t.Errorf("sources: %.100q, %v", out, err)
	}
}

// A whole of 0 has no percentage.
func TestPercent(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, of wire.Long
		want  string
	}{{0, 0, ""}, {0, 3, "0.0 %"}, {1, 3, "33.3 %"}, {3, 3, "100.0 %"}} {
		if got := percent(c.n, c.of); got != c.want {
			t.Errorf("%d of %d: %q", c.n, c.of, got)
		}
	}
}

// Each kind of contribution shows the figures that it has, in as many columns as the others.
func TestFiguresOfContributions(t *testing.T) {
	t.Parallel()
	tx := wire.Hash("0x01")
	rows := []wire.Row{{Tx: &tx, LogIndex: 7}}
	for _, c := range []struct {
		c              wire.Contribution
		figures, where string
	}{
		{wire.Contribution{Kind: trust.KindOpinion, Opinion: -0.5, Evidence: 1.25, Weight: 1, Count: 2, Rows: rows},
			"-0.500\t1.250\t1.000", "2, newest 0x01 log 7"},
		{wire.Contribution{Kind: trust.KindOpinion, Count: 1, Rows: rows, Sourced: 0.5, Sources: []string{"a", "b"},
			Path: []wire.Address{"0xr", "0xm", "0xc"}}, "+0.000\t0.000\t0.000",
			"1, newest 0x01 log 7; 0.500 by a, b; 2 steps from root 0xr"},
		{wire.Contribution{Kind: trust.KindRest, Evidence: 3, Count: 9}, "-\t3.000\t-", "of 9 opinions"},
		{wire.Contribution{Kind: trust.KindPrior}, "-\t-\t-", "-"},
		{wire.Contribution{Kind: trust.KindOpinion, Rows: []wire.Row{{}}}, "+0.000\t0.000\t0.000",
			"0, newest " + common.Hash{}.Hex() + " log 0"},
	} {
		if got := figures(c.c); got != c.figures {
			t.Errorf("%+v: figures %q", c.c, got)
		}
		if got := where(c.c); got != c.where {
			t.Errorf("%+v: where %q", c.c, got)
		}
	}
	for want, list := range map[string][]wire.Address{"-": nil, "0xa": {"0xa"},
		"0xa and 2 more": {"0xa", "0xb", "0xc"}} {
		if got := raters(list); got != want {
			t.Errorf("%q: %q", list, got)
		}
	}
}

// A gate that keeps agents out is passed by bad ones, and its words say so.
func TestMeaningOfGates(t *testing.T) {
	t.Parallel()
	units := 2.5
	for _, c := range []struct {
		gate           wire.Gate
		meaning, lacks string
	}{
		{wire.Gate{Direction: "admits", Passed: true}, "admits the agent", ""},
		{wire.Gate{Direction: "admits", Lacks: []wire.Lacking{{What: "low", Must: "atLeast", Have: 1, Need: 20,
			Units: &units}, {What: "tier", Must: "atLeast", Have: 1, Need: 2}}}, "does not admit it",
			"low 1.000 of 20.000 (2.50 full-weight opinions of +1), tier 1.000 of 2.000"},
		{wire.Gate{Direction: "keepsOut", Passed: true}, "excludes the agent", ""},
		{wire.Gate{Direction: "keepsOut", Lacks: []wire.Lacking{{What: "high", Must: "below", Have: 9, Need: -20}}},
			"passed: not excluded", "high 9.000 must be below -20.000"},
	} {
		if got := meaning(c.gate); got != c.meaning {
			t.Errorf("%+v: %q", c.gate, got)
		}
		if got := lacks(c.gate); got != c.lacks {
			t.Errorf("%+v: %q", c.gate, got)
		}
	}
}

// A score says up to which block its input was proven, and a source what was wrong with its last reading.
func TestVerifiedAndTrouble(t *testing.T) {
	t.Parallel()
	block, reason, at := wire.Long(7), "no route", wire.Time("2026-01-02T03:04:05Z")
	for want, got := range map[string]string{
		"verified to block 7":                  verified(true, &block),
		"not verified":                         verified(false, nil),
		"not verified: blocks are proven to 7": verified(false, &block),
		"ok":                                   troubleOf(wire.SourceState{Status: "ok"}),
		"incomplete: no route; last read completely as of 2026-01-02T03:04:05Z; 3 credentials of then count on": troubleOf(
			wire.SourceState{Status: "incomplete", Reason: &reason, CompleteAt: &at, Kept: 3}),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// An explanation has a part for what there is, and no title over nothing.
func TestPrintExplanation(t *testing.T) {
	t.Parallel()
	var e wire.ExplainAnswer
	e.Agent, e.Sentence, e.Status = "eip155:1:0x1:7", "Nobody has rated it.", "unrated"
	e.Gates = []wire.Gate{{ID: "service", Direction: "admits"}}
	var out bytes.Buffer
	if err := printExplanation(&out, e); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"Nobody has rated it.\nagent", "service  ", "does not admit it"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	for _, title := range []string{"rows that do not count", "without", "block"} {
		if strings.Contains(text, title) {
			t.Errorf("%q is in\n%s", title, text)
		}
	}
	e.ExcludedByReason = []wire.ReasonCount{{Reason: "self", Count: 2}, {Reason: "scale", Count: 1}}
	e.Counterfactuals = []wire.Counterfactual{{Without: []wire.Address{"0xa"}}, {}}
	out.Reset()
	if err := printExplanation(&out, e); err != nil || strings.Count(out.String(), "rows that do not count") != 1 ||
		strings.Count(out.String(), "without") != 1 {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// The hint of a set that does not exist names each set once, in order.
func TestSetNames(t *testing.T) {
	t.Parallel()
	sets := []rootdb.RootSet{{ChainID: 1, Name: "b"}, {ChainID: 2, Name: "a"}, {ChainID: 2, Name: "b"}}
	for _, c := range []struct {
		sets  []rootdb.RootSet
		chain uint64
		want  string
	}{{sets, 0, "there are: a, b"}, {sets[:1], 1, "chain 1 has only: b"}, {nil, 1, "chain 1 has only: none"}} {
		if got := setNames(c.sets, c.chain); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// A root expires at its time and not a moment later, and the hash of a set is that of its roots, whatever the clock
// says.
func TestRootsThatExpire(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	roots := []repute.TrustRoot{{Address: common.Address{1}, Weight: repute.RootUnit / 2, Reason: "a", Expires: at},
		{Address: common.Address{2}, Weight: repute.RootUnit, Reason: "b"}}
	set := rootdb.RootSet{ChainID: 1, Name: "default"}
	before := encodeRoots(set, roots, at.Add(-time.Nanosecond))
	after := encodeRoots(set, roots, at)
	if before.Roots[0].Expired || !after.Roots[0].Expired || after.Roots[1].Expired || before.Hash != after.Hash ||
		before.Hash == encodeRoots(set, roots[:1], at).Hash {
		t.Errorf("before %+v, after %+v", before, after)
	}
	var out bytes.Buffer
	if err := printRoots(&out, []rootList{after}); err != nil ||
		!strings.Contains(out.String(), "0.5     EXPIRED 2026-01-02T03:04:05Z  a\n") ||
		!strings.Contains(out.String(), "1       never ") {
		t.Errorf("%s, %v", out.String(), err)
	}
	out.Reset()
	if err := printRoots(&out, nil); err != nil || !strings.Contains(out.String(), "only sources") {
		t.Errorf("%s, %v", out.String(), err)
	}
}

// A name is the configuration's before that of the database, and that before the one of known networks.
func TestChainNamed(t *testing.T) {
	t.Parallel()
	var c config.Config
	c.Chains = append(c.Chains, config.ChainConfig{Name: "own", ID: 5},
		config.ChainConfig{Name: "base", ID: 6}, config.ChainConfig{Name: "ethereum"})
	named := chainNamed(c, []repute.Chain{{Name: "own", ID: 9}, {Name: "stored", ID: 7}, {ID: 8}})
	for name, want := range map[string]uint64{"own": 5, "base": 6, "stored": 7, "ethereum": 1, "nobody": 0, "": 0} {
		if id, known := named(name); known != (want != 0) || known && id != want {
			t.Errorf("%q: %d, %t", name, id, known)
		}
	}
}

// A file is stored chain by chain. One without entries, or with a wrong one, stores nothing; a chain that cannot be
// stored ends the import before later ones.
func TestImportStoresChainByChain(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, c := range []struct {
		file   string
		fails  uint64
		stored string
		err    error
	}{
		{"2a 1b 2c", 0, "1[1b]2[2a 2c]", nil},
		{"", 0, "", repute.ErrInvalid},
		{"1a wrong", 0, "", broken},
		{"3a 1b 2c", 2, "1[1b]", broken},
	} {
		var stored, out strings.Builder
		f := fileImport[string]{list: "roots", one: "one",
			read: func(in io.Reader, _ rootfile.Options) ([]string, error) {
				text, err := io.ReadAll(in)
				if strings.Contains(string(text), "wrong") {
					err = broken
				}
				return strings.Fields(string(text)), err
			},
			chain: func(s string) uint64 { return uint64(s[0] - '0') },
			add: func(_ context.Context, _ *store.DB, chain uint64, of []string, replace bool) error {
				if chain == c.fails || !replace {
					return broken
				}
				fmt.Fprintf(&stored, "%d%v", chain, of)
				return nil
			}}
		err := f.run(t.Context(), &out, nil, strings.NewReader(c.file), rootfile.Options{}, true)
		if !errors.Is(err, c.err) || stored.String() != c.stored ||
			strings.Count(out.String(), "\n") != strings.Count(c.stored, "[") {
			t.Errorf("%s: %v, stored %s, printed %q", c.file, err, stored.String(), out.String())
		}
	}
}
