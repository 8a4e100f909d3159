package crawl

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"pgregory.net/rapid"

	"repute"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/clitest"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/manifestdb"
)

// Domains are stored in one spelling, and a line that is none is refused.
func TestParseList(t *testing.T) {
	t.Parallel()
	got, err := parseList(strings.NewReader("# shops\n\nShop.Example.com\nshop.example.com. # again\r\nbücher.example\n"))
	if want := []string{"shop.example.com", "xn--bcher-kva.example"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v; want %q", got, err, want)
	}
	for _, line := range []string{"https://shop.example", "shop.example:8443", "shop.example/x", "localhost",
		"127.0.0.1",
		"[::1]", "a b.example", "user@shop.example", ".", "..", strings.Repeat("a.", 127) + "example"} {
		if got, err := parseList(strings.NewReader("a.example\n" + line)); !errors.Is(err, repute.ErrInvalid) ||
			!strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
}

// Whatever a line has, a domain that is read is read again as itself.
func TestDomainsAreStable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-zA-Z0-9.\-_ü]{1,40}`)).Draw(t, "text")
		if domain := domainOf(text); domain != "" && domainOf(domain) != domain {
			t.Fatalf("%q is %q, and that is %q", text, domain, domainOf(domain))
		}
	})
}

// The command counts new domains, and a second run adds none.
func TestImport(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	list := filepath.Join(t.TempDir(), "domains.txt")
	if err := os.WriteFile(list, []byte("a.example\nb.example\na.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 domains, 2 new\n", "2 domains, 0 new\n"} {
		out := &clitest.Output{}
		err := clitest.Run(t.Context(), out, func(p *cli.Program) []*cobra.Command {
			return []*cobra.Command{ImportCommand(p)}
		}, "import", list, "--database-url", url)
		if err != nil || out.String() != want {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
	}
}

// Domains are probed once they are known, until an operator ends it.
func TestProbe(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	run := func(args ...string) error {
		return clitest.Run(t.Context(), &clitest.Output{}, func(p *cli.Program) []*cobra.Command {
			return []*cobra.Command{ImportCommand(p), ProbeCommand(p)}
		}, append(args, "--database-url", url)...)
	}
	list := filepath.Join(t.TempDir(), "domains.txt")
	if err := os.WriteFile(list, []byte("a.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run("import", list); err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), url, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	for _, c := range []struct {
		args []string
		on   bool
		kind error
	}{
		{[]string{"probe", "A.example"}, true, nil},
		{[]string{"probe", "a.example", "unknown.example"}, true, repute.ErrNotFound},
		{[]string{"probe", "https://a.example"}, true, repute.ErrInvalid},
		{[]string{"probe", "a.example", "--off"}, false, nil},
	} {
		if err := run(c.args...); !errors.Is(err, c.kind) {
			t.Errorf("%q: %v", c.args, err)
		}
		m, _, err := manifestdb.Read(t.Context(), db, "a.example")
		if err != nil || m.Watch.Probed != c.on {
			t.Errorf("%q: probed %v, %v", c.args, m.Watch.Probed, err)
		}
	}
}

// Only a domain that is not known is helped by an import.
func TestProbeOfUnknownDomain(t *testing.T) {
	t.Parallel()
	for _, err := range []error{repute.ErrNotFound, repute.ErrUnavailable} {
		got := unprobed(err)
		if !errors.Is(got, err) || strings.Contains(got.Error(), "import") != errors.Is(err, repute.ErrNotFound) {
			t.Errorf("%v: %v", err, got)
		}
	}
}
