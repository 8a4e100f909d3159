package files

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/manifest/agentjson"
	"repute/manifest/schemas"
	"repute/resolver"
)

// run runs a command of repute manifest, with a text as standard input.
func run(t *testing.T, in string, args ...string) (string, error) {
	t.Helper()
	var out strings.Builder
	p := &cli.Program{Stdin: strings.NewReader(in), Stdout: &out, Stderr: &out}
	root := &cobra.Command{Use: "repute", SilenceErrors: true, SilenceUsage: true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) { p.Flags.Set = cmd.Flags() }}
	root.AddCommand(ManifestCommand(p))
	root.SetArgs(append([]string{"manifest"}, args...))
	err := root.ExecuteContext(t.Context())
	return out.String(), err
}

// codeOf returns the exit code that an error has of its own, 0 for none.
func codeOf(err error) int {
	var exit cli.ExitError
	if errors.As(err, &exit) {
		return exit.Code
	}
	return 0
}

// registration is a registration file without errors.
const registration = `{"type":"https://eips.ethereum.org/EIPS/eip-8004#registration-v1","name":"a","description":"b",
 "image":"https://a.example/i.png","services":[{"name":"web","endpoint":"https://a.example/"}],"active":true,
 "x402Support":false,"registrations":[],"supportedTrust":["reputation"]}`

// A document with errors ends the command with 1, one that cannot be read with 2, and standard input is a document as
// any other.
func TestCheckExitCodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	good, broken := write("good.json", registration), write("broken.json", "<html>")
	large := write("large.json", strings.Repeat(" ", resolver.DefaultMaxBytes+1))
	for _, c := range []struct {
		in   string
		args []string
		code int
		want string
	}{
		{"", []string{good}, 0, "kind    registration"},
		{registration, []string{"-"}, 0, "standard input\n"},
		{"", []string{broken}, cli.CodeFailed, "\nerror\n"},
		{"", []string{broken, "--json"}, cli.CodeFailed, `"errors": 1`},
		{"<html>", []string{"-"}, cli.CodeFailed, "1 error"},
		{"", []string{large}, cli.CodeUnchecked, ""},
		{"", []string{dir}, cli.CodeUnchecked, ""},
		{"", []string{filepath.Join(dir, "none.json")}, cli.CodeUnchecked, ""},
		{"", []string{"word"}, cli.CodeUnchecked, ""},
		{"", []string{"word", "--json"}, cli.CodeUnchecked, `"source": "word"`},
	} {
		out, err := run(t, c.in, append([]string{"check"}, c.args...)...)
		if codeOf(err) != c.code || c.code == 0 && err != nil || !strings.Contains(out, c.want) {
			t.Errorf("%q: %v, printed %s", c.args, err, out)
		}
	}
}

// The error of an argument that names no document says what it was taken for, and what to give instead.
func TestCheckNamesTheFix(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for what, want := range map[string]string{
		dir:                      "is a directory (give the file in it)",
		dir + "/none.json":       "there is no file",
		"word":                   "is no file, URL, CID or agent",
		strings.Repeat("x", 999): "is no file, URL, CID or agent",
	} {
		_, err := run(t, "", "check", what)
		if err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 500 {
			t.Errorf("%.60s: %v", what, err)
		}
	}
	_, err := run(t, "", "check", "-", "--kind", "thing")
	if !errors.Is(err, repute.ErrInvalid) || !strings.Contains(err.Error(), strings.Join(checkKinds, ", ")) {
		t.Errorf("an unknown kind: %v", err)
	}
}

// A document has a bound, exactly that of documents that the index reads.
func TestReadDocumentHasTheBoundOfTheIndex(t *testing.T) {
	t.Parallel()
	for size, fits := range map[int]bool{0: true, resolver.DefaultMaxBytes: true, resolver.DefaultMaxBytes + 1: false} {
		b, err := readDocument(strings.NewReader(strings.Repeat("x", size)), "in")
		if (err == nil) != fits || fits && len(b) != size || !fits && !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%d bytes: %d read, %v", size, len(b), err)
		}
	}
}

// A failed fetch is told with its reason once and with its fix where there is one.
func TestUnfetched(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want string
	}{
		{&resolver.Error{Reason: resolver.ReasonBadCID, Err: errors.New("bad_cid: too short")},
			"bad_cid: too short (write ipfs://{cid}/{path})"},
		{&resolver.Error{Reason: resolver.ReasonTimeout, Err: errors.New("slow")}, "timeout: slow"},
		{&resolver.Error{Reason: resolver.ReasonCanceled, Err: errors.New("ended")}, "ended"},
		{errors.New("other"), "read u: other"},
	} {
		if got := unfetched("u", c.err).Error(); !strings.Contains(got, c.want) ||
			strings.Count(got, "bad_cid") > 1 {
			t.Errorf("%v: %s", c.err, got)
		}
	}
	if got := unfetched(strings.Repeat("u", 1<<20), errors.New("x")).Error(); len(got) > 200 {
		t.Errorf("the error has %d bytes of the URI", len(got))
	}
}

// A problem of a file is shown with the place that its pointer names, and a document of an agent has none.
func TestPlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		problem manifestProblem
		want    string
	}{
		{manifestProblem{}, "(document)"},
		{manifestProblem{Line: 3}, "(document)"},
		{manifestProblem{Path: "/a"}, "/a"},
		{manifestProblem{Path: "/a", Line: 3, Column: 7}, "/a (line 3, column 7)"},
	} {
		if got := c.problem.place(); got != c.want {
			t.Errorf("%+v: %s", c.problem, got)
		}
	}
	report := judge("a", []byte("{\n \"name\": 7\n}"), judging{kind: repute.RegistrationDocument})
	at := slices.IndexFunc(report.Problems, func(p manifestProblem) bool { return p.Path == "/name" })
	if at < 0 || report.Problems[at].Line != 2 || report.Problems[at].Column == 0 {
		t.Errorf("the wrong name is not at line 2: %+v", report.Problems)
	}
}

// The relation of a file and an agent has a sentence for each result, and an unknown one has none.
func TestLinkText(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, link := range []repute.LinkResult{repute.LinkLinked, repute.LinkUnlinked, repute.LinkOther, ""} {
		text := Report{Link: link}.linkText()
		if seen[text] || (text == "") != (link == "") {
			t.Errorf("%q: %q", link, text)
		}
		seen[text] = true
	}
}

// Whatever bytes are published, each kind gives a report whose counts are those of its problems, whose problems all
// have a severity, and whose text cannot act on a terminal.
func FuzzJudge(f *testing.F) {
	for _, text := range []string{"", "{}", "[]", "<html>", registration, `{"a":{"b":[1,2,`, "\xef\xbb\xbf{}",
		`{"version":"1.4","origin":"a.example","payout_address":"P","intents":[{"name":"\u001b[2J"}]}`,
		`{"name":"\u202ea\u0007","image":7}`, `{"agentRegistry":"eip155:1:0x1","value":1e999}`} {
		f.Add([]byte(text))
	}
	kinds := []repute.DocumentKind{kindAuto, repute.RegistrationDocument, repute.FeedbackDocument, repute.CardDocument,
		repute.ValidationDocument, agentjson.Document, schemas.CapabilityDocument, schemas.LogDocument}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range kinds {
			report := judge("source", b, judging{kind: kind})
			if report.Bytes != int64(len(b)) || report.Errors+report.Warnings+report.Infos != len(report.Problems) {
				t.Fatalf("%s: %+v", kind, report)
			}
			for _, p := range report.Problems {
				if p.Code == "" || p.Hint == "" {
					t.Fatalf("%s: a problem without code or fix: %+v", kind, p)
				}
			}
			var out strings.Builder
			if err := report.write(&out); err != nil {
				t.Fatal(err)
			}
			if text := out.String(); cli.VisibleLines(text) != text {
				t.Fatalf("%s: %q", kind, text)
			}
			if _, err := json.Marshal(report); err != nil {
				t.Fatal(err)
			}
		}
	})
}
