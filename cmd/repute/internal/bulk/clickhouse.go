package bulk

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"repute"
	"repute/api/export"
	"repute/cmd/repute/internal/cli"
	"repute/store/exportdb"
)

// loadCommand loads downloaded sets into ClickHouse.
func loadCommand(p *cli.Program) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "load DIR --to URL",
		Short: "load downloaded sets into ClickHouse",
		Long: `Creates the tables where they are missing and inserts the Parquet files of a
download, each once: table repute_parts lists what was loaded. Rows of a later block
replace those of an earlier one.

  repute export load base --to http://user:password@127.0.0.1:8123/default`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return load(cmd.Context(), p, args[0], to) },
	}
	cmd.Flags().StringVar(&to, "to", "",
		"URL of ClickHouse's HTTP interface with the database as its path; clickhouse: is http: at port 8123")
	return cmd
}

// load loads every set below a directory. Directories of sets that were not downloaded are skipped, and so are other
// files.
func load(ctx context.Context, p *cli.Program, dir, to string) error {
	db, err := openClickHouse(to)
	if err != nil {
		return err
	}
	found := 0
	for _, name := range export.Sets() {
		at := filepath.Join(dir, name)
		if _, err := os.Stat(filepath.Join(at, manifestFile)); err != nil {
			continue
		}
		found++
		m, err := readManifest(at)
		if err != nil {
			return err
		}
		loaded, err := db.load(ctx, at, m)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Fprintf(p.Stdout, "%s: %d of %s loaded, the others were already\n", name, loaded,
			cli.Count(len(m.Parts), "part"))
	}
	if found == 0 {
		return repute.Invalid("DIR", "has no downloaded set", "the directory of repute export --out")
	}
	return nil
}

// clickhouseTimeout bounds one statement with the file that it inserts.
const clickhouseTimeout = 10 * time.Minute

// clickhouse sends statements to a server. base ends with a slash and has neither path nor user. user is empty where
// the server needs none.
type clickhouse struct {
	base           string
	database       string
	user, password string
	http           *http.Client
}

// openClickHouse returns a client for a URL. Errors never quote it, because it may hold a password. The scheme
// clickhouse: is that of other tools for the native protocol; its HTTP interface is at port 8123.
func openClickHouse(to string) (*clickhouse, error) {
	wrong := repute.Invalid("to", "is no URL of ClickHouse", "e.g. http://user:password@127.0.0.1:8123/default")
	u, err := url.Parse(to)
	if err != nil || u.Hostname() == "" {
		return nil, wrong
	}
	switch u.Scheme {
	case "http", "https":
	case "clickhouse":
		u.Scheme = "http"
		if u.Port() == "" {
			u.Host += ":8123"
		}
	default:
		return nil, wrong
	}
	c := &clickhouse{base: u.Scheme + "://" + u.Host + "/", database: strings.Trim(u.Path, "/"),
		user: u.User.Username(),
		http: &http.Client{Timeout: clickhouseTimeout}}
	c.password, _ = u.User.Password()
	if c.database == "" {
		c.database = "default"
	}
	return c, nil
}

// run sends a statement with the data that it reads, and returns the first bytes of the answer. Statements go into the
// query, so that the body is free for the data. User and password go into headers, which logs of requests leave out.
func (c *clickhouse) run(ctx context.Context, statement string, body io.Reader) (string, error) {
	q := url.Values{"database": {c.database}, "query": {statement}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"?"+q.Encode(), body)
	if err != nil {
		return "", repute.Invalid("to", "is no URL of ClickHouse", "e.g. http://127.0.0.1:8123/default")
	}
	if c.user != "" {
		req.Header.Set("X-ClickHouse-User", c.user)
		req.Header.Set("X-ClickHouse-Key", c.password)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return "", fmt.Errorf("ClickHouse: %w: %w", repute.ErrUnavailable, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		return "", fmt.Errorf("ClickHouse: %w: %w", repute.ErrUnavailable, err)
	}
	if res.StatusCode != http.StatusOK {
		return "", fmt.Errorf("ClickHouse answers with status %d: %.500s", res.StatusCode, raw)
	}
	return string(raw), nil
}

// load inserts the parts of a set that were not inserted yet. The manifest MUST have passed isManifest: its names and
// hashes become parts of statements.
func (c *clickhouse) load(ctx context.Context, dir string, m *export.SetManifest) (loaded int, err error) {
	if m.Format != export.Parquet {
		return 0, repute.Invalid("DIR", "has "+m.Set+" as "+m.Format, "download it with --format parquet")
	}
	for _, statement := range []string{partsTable, tableOf(m.Set)} {
		if _, err := c.run(ctx, statement, nil); err != nil {
			return 0, err
		}
	}
	for n, part := range m.Parts {
		count, err := c.run(ctx, loadedBefore(m, part), nil)
		if err != nil {
			return loaded, err
		}
		if strings.TrimSpace(count) != "0" {
			continue
		}
		if err := c.insert(ctx, partFile(dir, m, n), m, part); err != nil {
			return loaded, err
		}
		loaded++
	}
	return loaded, nil
}

// insert inserts a file whose hash is that of the manifest, and then notes it. A crash between the two inserts it once
// more, which changes nothing that queries with FINAL see.
func (c *clickhouse) insert(ctx context.Context, name string, m *export.SetManifest, part export.SetPart) error {
	if sum, _, err := hashFile(name); err != nil || sum != part.SHA256 {
		return repute.Invalid("DIR", name+" is missing or not complete", "repeat the download")
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := c.run(ctx, insertInto(m), file); err != nil {
		return err
	}
	_, err = c.run(ctx, fmt.Sprintf("INSERT INTO repute_parts VALUES ('%s', %d, %d, '%s', %d, now())", m.Set, m.ChainID,
		m.Block,
		part.SHA256, part.Rows), nil)
	return err
}

// partsTable lists the parts that were loaded. Its engine keeps duplicate rows, which only say that a part was loaded
// twice.
const partsTable = `CREATE TABLE IF NOT EXISTS repute_parts (set LowCardinality(String), chain_id UInt64, block UInt64,
	sha256 FixedString(64), rows UInt64, loaded_at DateTime('UTC')) ENGINE = MergeTree ORDER BY (set, chain_id, block, sha256)`

// loadedBefore returns the statement that counts a part among those that were loaded.
func loadedBefore(m *export.SetManifest, part export.SetPart) string {
	return fmt.Sprintf("SELECT count() FROM repute_parts WHERE set = '%s' AND chain_id = %d AND block = %d AND sha256 = '%s'",
		m.Set, m.ChainID, m.Block, part.SHA256)
}

// rowOf returns the type of a set's rows, and the key by which a row of a later block replaces one of an earlier. Token
// ids are text in the files, because they have up to 256 bits, and are ordered as numbers.
func rowOf(set string) (row reflect.Type, key string) {
	switch set {
	case "agents":
		return reflect.TypeFor[exportdb.Agent](), "chain_id, toUInt256(token_id)"
	case "feedback":
		return reflect.TypeFor[exportdb.Feedback](), "chain_id, toUInt256(token_id), client, feedback_index"
	case "events":
		return reflect.TypeFor[exportdb.Event](), "chain_id, block, log_index"
	case "scores":
		return reflect.TypeFor[exportdb.Score](), "chain_id, toUInt256(token_id)"
	}
	return reflect.TypeFor[exportdb.Change](), "chain_id, cursor"
}

// columnsOf returns the columns of a set with their types in ClickHouse. The struct that the server writes the files
// from is the only description of the columns, so that both cannot differ.
func columnsOf(set string) string {
	row, _ := rowOf(set)
	var out []string
	for f := range row.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("parquet"), ",")
		out = append(out, name+" "+typeOf(f.Type, options))
	}
	return strings.Join(out, ", ")
}

// typeOf returns the type of a column in ClickHouse.
func typeOf(t reflect.Type, options string) string {
	if t.Kind() == reflect.Pointer {
		return "Nullable(" + typeOf(t.Elem(), options) + ")"
	}
	switch {
	case t == reflect.TypeFor[time.Time]() && strings.Contains(options, "microsecond"):
		return "DateTime64(6, 'UTC')"
	case t == reflect.TypeFor[time.Time]():
		return "DateTime64(3, 'UTC')"
	case t.Kind() == reflect.Uint64:
		return "UInt64"
	case t.Kind() == reflect.Int32:
		return "Int32"
	case t.Kind() == reflect.Bool:
		return "Bool"
	}
	return "String"
}

// tableOf returns the statement that creates the table of a set. FINAL shows the row of the highest snapshot_block of a
// key.
func tableOf(set string) string {
	_, key := rowOf(set)
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS repute_%s (%s, snapshot_block UInt64) ENGINE = ReplacingMergeTree(snapshot_block) ORDER BY (%s)",
		set, columnsOf(set), key)
}

// insertInto returns the statement that inserts a Parquet file, which is sent with it. The structure is given to
// input(), so that types are those of the table and not inferred of the file.
func insertInto(m *export.SetManifest) string {
	return fmt.Sprintf("INSERT INTO repute_%s SELECT *, %d FROM input('%s') FORMAT Parquet", m.Set, m.Block,
		strings.ReplaceAll(columnsOf(m.Set), "'", `\'`))
}
