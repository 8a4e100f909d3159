package bulk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/api/export"
	"repute/cmd/repute/internal/cli"
	"repute/cmd/repute/internal/clitest"
)

// answer is an answer of a server with a status, a header and a body.
func answer(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}
}

// Only what may succeed later is asked again, and not later than the bound, however long the server asks to wait.
func TestRefused(t *testing.T) {
	t.Parallel()
	d := newDownloader(downloadFlags{}, "")
	for _, c := range []struct {
		res   *http.Response
		kind  error // nil: no failure
		again bool
		wait  time.Duration
	}{
		{answer(200, ""), nil, false, 0},
		{answer(206, ""), nil, false, 0},
		{answer(400, `{"detail":"block: is wrong","hint":"a final block"}`), repute.ErrInvalid, false, 0},
		{answer(301, ""), repute.ErrInvalid, false, 0},
		{answer(404, `{"detail":"chain 1"}`), repute.ErrNotFound, false, 0},
		{answer(410, ""), errGone, false, 0},
		{answer(429, "", "Retry-After", "7"), errAgain, true, 7 * time.Second},
		{answer(503, "", "Retry-After", "999999"), errAgain, true, longestWait},
		{answer(502, "<html>", "Retry-After", "-1"), errAgain, true, 0},
	} {
		err := d.refused(c.res)
		var wait *waitError
		if !errors.Is(err, c.kind) || errors.Is(err, errAgain) != c.again || errors.As(err, &wait) != c.again ||
			c.again && wait.pause != c.wait {
			t.Errorf("status %d: %v, %+v", c.res.StatusCode, err, wait)
		}
	}
	err := d.refused(answer(400, `{"detail":"`+strings.Repeat("x", 1<<20)+`"}`))
	if len(err.Error()) > 700 {
		t.Errorf("the error has %d bytes of the answer", len(err.Error()))
	}
}

// Attempts that get nothing are counted, and one that gets something begins the count anew: a slow line is not given
// up.
func TestTryCountsAttemptsWithoutProgress(t *testing.T) {
	t.Parallel()
	d := newDownloader(downloadFlags{}, "")
	d.rest = 0
	for _, c := range []struct {
		progress string // of each attempt: + for some, - for none, . for success, ! for a failure that lasts
		calls    int
		err      error
	}{
		{".", 1, nil}, {"--.", 3, nil}, {"----", 3, repute.ErrUnavailable}, {"--+--+--+--.", 12, nil},
		{"--+---.", 6, repute.ErrUnavailable}, {"-!.", 2, io.ErrClosedPipe},
	} {
		calls := 0
		err := d.try(t.Context(), 3, func(context.Context) (bool, error) {
			calls++
			switch c.progress[calls-1] {
			case '.':
				return false, nil
			case '!':
				return false, io.ErrClosedPipe
			case '+':
				return true, errAgain
			}
			return false, errAgain
		})
		if !errors.Is(err, c.err) || c.err == nil && err != nil || calls != c.calls {
			t.Errorf("%s: %d calls, %v", c.progress, calls, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := d.try(ctx, 3, func(context.Context) (bool, error) { cancel(); return false, errAgain })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// A part is continued by a range that holds for its bytes alone. A server that sends the whole instead replaces what is
// there, and one that sends more than the part has is cut off.
func TestFetchContinues(t *testing.T) {
	t.Parallel()
	part := []byte("0123456789")
	sum := strings.Repeat("ab", 32)
	for _, c := range []struct {
		have    string
		ranges  bool
		more    string
		asked   string // Range and If-Range
		want    string
		fetched int64
	}{
		{"", true, "", " ", "0123456789", 10},
		{"0123", true, "", `bytes=4- "` + sum + `"`, "0123456789", 6},
		{"0123", false, "", `bytes=4- "` + sum + `"`, "0123456789", 10},
		{"0123456789", true, "", "none", "0123456789", 0},
		{"01234567890", false, "", " ", "0123456789", 10},
		{"", false, strings.Repeat("x", 1000), " ", "0123456789x", 11},
	} {
		asked := "none"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = r.Header.Get("Range") + " " + r.Header.Get("If-Range")
			from := 0
			if c.ranges && r.Header.Get("Range") != "" {
				from = len(c.have)
				w.WriteHeader(http.StatusPartialContent)
			}
			_, _ = w.Write(append(bytes.Clone(part[from:]), c.more...))
		}))
		name := filepath.Join(t.TempDir(), "part")
		if err := os.WriteFile(name, []byte(c.have), 0o600); err != nil {
			t.Fatal(err)
		}
		d := newDownloader(downloadFlags{server: server.URL + "/"}, "key")
		n, err := d.fetch(t.Context(), name, export.SetPart{Bytes: int64(len(part)), SHA256: sum, URL: export.Prefix})
		server.Close()
		got, _ := os.ReadFile(name)
		if err != nil || string(got) != c.want || n != c.fetched || asked != c.asked {
			t.Errorf("with %q: %q, %d fetched, asked %q, %v", c.have, got, n, asked, err)
		}
	}
}

// A manifest is a stranger's: names that become paths or parts of statements are those of this product.
func TestIsManifest(t *testing.T) {
	t.Parallel()
	good := export.SetPart{SHA256: strings.Repeat("0a", 32), URL: export.Prefix + "agents", Bytes: 1}
	for want, list := range map[bool][]func(*export.SetManifest){
		true: {func(*export.SetManifest) {}, func(m *export.SetManifest) { m.Parts = nil },
			func(m *export.SetManifest) { m.Format = export.NDJSON }},
		false: {
			func(m *export.SetManifest) { m.Set = "../agents" },
			func(m *export.SetManifest) { m.Set = "" },
			func(m *export.SetManifest) { m.Format = "Parquet" },
			func(m *export.SetManifest) { m.Parts[1].SHA256 = strings.Repeat("0a", 31) },
			func(m *export.SetManifest) { m.Parts[1].SHA256 = strings.Repeat("0g", 32) },
			func(m *export.SetManifest) { m.Parts[1].SHA256 = "" },
			func(m *export.SetManifest) { m.Parts[1].Bytes = -1 },
			func(m *export.SetManifest) { m.Parts[1].URL = "@evil.example/" },
			func(m *export.SetManifest) { m.Parts[1].URL = "https://evil.example" + export.Prefix },
		},
	} {
		for i, change := range list {
			m := &export.SetManifest{Set: "agents", Format: export.Parquet, Parts: []export.SetPart{good, good}}
			change(m)
			if isManifest(m) != want {
				t.Errorf("%d: %+v is a manifest: %t", i, m, !want)
			}
		}
	}
}

// A directory whose manifest cannot be one of this product is refused, and one without a manifest is no download.
func TestReadManifest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := readManifest(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no manifest: %v", err)
	}
	for _, text := range []string{"", "{}", "[]", `{"set":"agents","format":"csv"}`} {
		if err := replaceFile(filepath.Join(dir, manifestFile), []byte(text)); err != nil {
			t.Fatal(err)
		}
		if m, err := readManifest(dir); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: %+v, %v", text, m, err)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("replaced files leave %v, %v", files, err)
	}
}

// Wrong flags of the commands are said with their names, before the database is opened.
func TestCommandRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, field string }{
		{"apikeys add name --days -1", "days"},
		{"apikeys add name --data-dir " + t.TempDir(), "data-dir"},
		{"export --set agents", "out"},
		{"export --out x", "set"},
		{"export --set agents --out x --chain 1 --server ftp://host", "server"},
		{"export load " + t.TempDir() + " --to http://127.0.0.1:1", "DIR"},
		{"export load . --to nowhere", "to"},
	} {
		err := clitest.Run(t.Context(), &clitest.Output{}, func(p *cli.Program) []*cobra.Command {
			cmd := &cobra.Command{}
			AddExport(p, cmd)
			return []*cobra.Command{cmd, KeysCommand(p)}
		}, strings.Fields(c.args)...)
		var input *repute.InputError
		if !errors.As(err, &input) || input.Field != c.field || input.Hint == "" {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}

// warehouse takes statements as ClickHouse does, and counts a part as loaded once it was noted.
type warehouse struct {
	*httptest.Server
	noted    map[string]bool // by the sha256 of parts
	inserted []string        // bodies of inserts
	fail     string          // statements that begin like this are refused
}

func newWarehouse(t *testing.T) *warehouse {
	t.Helper()
	x := &warehouse{noted: map[string]bool{}}
	x.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		statement, body := r.URL.Query().Get("query"), &bytes.Buffer{}
		_, _ = body.ReadFrom(r.Body)
		switch {
		case r.Header.Get("X-ClickHouse-Key") != "secret" || x.fail != "" && strings.HasPrefix(statement, x.fail):
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, "no")
		case strings.HasPrefix(statement, "SELECT count()"):
			n := 0
			for sum := range x.noted {
				n += strings.Count(statement, sum)
			}
			fmt.Fprintln(w, n)
		case strings.HasPrefix(statement, "INSERT INTO repute_parts"):
			x.noted[strings.Split(statement, "'")[3]] = true
		case strings.HasPrefix(statement, "INSERT INTO"):
			x.inserted = append(x.inserted, body.String())
		}
	}))
	t.Cleanup(x.Close)
	return x
}

// A part is inserted before it is noted. What was noted is not inserted again; where the note failed the part is, and a
// damaged file never is.
func TestLoadInsertsEachPartOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := &export.SetManifest{Set: "agents", Format: export.Parquet, ChainID: 1, Block: 7}
	for n, text := range []string{"one", "two"} {
		if err := os.WriteFile(partFile(dir, m, n), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		sum, size, err := hashFile(partFile(dir, m, n))
		if err != nil || size != 3 {
			t.Fatalf("%d bytes, %v", size, err)
		}
		m.Parts = append(m.Parts, export.SetPart{SHA256: sum, Bytes: size, URL: export.Prefix})
	}
	x := newWarehouse(t)
	db, err := openClickHouse(strings.Replace(x.URL, "//", "//user:secret@", 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		fail   string
		loaded int
		in     string
	}{{"INSERT INTO repute_parts", 0, "one"}, {"", 2, "one one two"}, {"", 0, "one one two"}} {
		x.fail = c.fail
		loaded, err := db.load(t.Context(), dir, m)
		if (err != nil) != (c.fail != "") || loaded != c.loaded || strings.Join(x.inserted, " ") != c.in {
			t.Errorf("%d loaded, %v; inserted %q", loaded, err, x.inserted)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("the error has the password: %v", err)
		}
	}
	x.noted = map[string]bool{}
	if err := os.WriteFile(partFile(dir, m, 0), []byte("onE"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := db.load(t.Context(), dir, m); !errors.Is(err, repute.ErrInvalid) || len(x.inserted) != 3 {
		t.Errorf("a damaged file: %v, inserted %q", err, x.inserted)
	}
	m.Format = export.NDJSON
	if _, err := db.load(t.Context(), dir, m); !errors.Is(err, repute.ErrInvalid) {
		t.Errorf("another format: %v", err)
	}
	x.Close()
	if _, err := db.run(t.Context(), "SELECT 1", nil); !errors.Is(err, repute.ErrUnavailable) ||
		strings.Contains(err.Error(), "secret") {
		t.Errorf("nobody answers: %v", err)
	}
}

// Every set has a table whose key is among its columns and whose columns have types that ClickHouse knows.
func TestTablesOfSets(t *testing.T) {
	t.Parallel()
	types := []string{"String", "UInt64", "Int32", "Bool", "DateTime64(3,'UTC')", "DateTime64(6,'UTC')"}
	for _, set := range export.Sets() {
		columns := map[string]bool{}
		for _, column := range strings.Split(strings.ReplaceAll(columnsOf(set), ", '", ",'"), ", ") {
			name, kind, _ := strings.Cut(column, " ")
			columns[name] = true
			if inner, ok := strings.CutPrefix(kind, "Nullable("); ok {
				kind = strings.TrimSuffix(inner, ")")
			}
			if name == "" || !slices.Contains(types, kind) {
				t.Errorf("%s: column %q has type %q", set, name, kind)
			}
		}
		_, key := rowOf(set)
		for _, part := range strings.Split(key, ", ") {
			name := strings.TrimSuffix(strings.TrimPrefix(part, "toUInt256("), ")")
			if !columns[name] {
				t.Errorf("%s: the key has %q, which is no column", set, name)
			}
		}
		if table := tableOf(set); !strings.Contains(table, "repute_"+set+" (") ||
			!strings.Contains(table, "("+key+")") {
			t.Errorf("%s: %s", set, table)
		}
	}
}
