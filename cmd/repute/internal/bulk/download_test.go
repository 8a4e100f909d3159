package bulk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"repute"
	"repute/api/export"
	"repute/cmd/repute/internal/cli"
	"repute/internal/httpapi"
	"repute/internal/pgtest"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/eventdb"
)

// index is a small index with a server of its exports. between stands in front of the server.
type index struct {
	db      *store.DB
	server  *httptest.Server
	between atomic.Pointer[func(http.Handler, http.ResponseWriter, *http.Request)]
	tip     repute.Block
}

const chainID = 8453

func addr(n int) common.Address { return common.BigToAddress(big.NewInt(int64(0xa000 + n))) }

func newIndex(t *testing.T) *index {
	t.Helper()
	db, err := store.Open(t.Context(), pgtest.New(t), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	chain := repute.Chain{ID: chainID, Name: "base", Identity: addr(1), Reputation: addr(2), StartBlock: 1}
	if err := chaindb.AddChain(t.Context(), db, chain); err != nil {
		t.Fatal(err)
	}
	x := &index{db: db}
	if x.tip, err = chaindb.Cursor(t.Context(), db, chainID); err != nil {
		t.Fatal(err)
	}
	server, err := httpapi.NewServer(httpapi.ServerOptions{Limits: httpapi.Limits{Rate: -1},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	export.Mount(server, db)
	h, err := server.Handler()
	if err != nil {
		t.Fatal(err)
	}
	x.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := x.between.Load(); f != nil {
			(*f)(h, w, r)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(x.server.Close)
	return x
}

// add mines a final block in which n agents are registered and rated.
func (x *index) add(t *testing.T, first, n int) {
	t.Helper()
	number := x.tip.Number + 1
	b := repute.Block{Number: number, Parent: x.tip.Hash, Time: time.Unix(1_750_000_000+int64(number)*2, 0).UTC(),
		Hash: common.BigToHash(big.NewInt(int64(number)))}
	batch := eventdb.Batch{ChainID: chainID, Parent: x.tip, To: b, Blocks: []repute.Block{b}}
	put := func(e repute.Event, address common.Address) {
		i := len(batch.Records)
		batch.Records = append(batch.Records, repute.Record{Time: b.Time, Event: e, Log: types.Log{Address: address,
			Topics: []common.Hash{{1}}, BlockNumber: number, BlockHash: b.Hash, Index: uint(i),
			Data:   []byte{1, 2, byte(i)},
			TxHash: common.BigToHash(big.NewInt(int64(number)<<16 | int64(i)))}})
	}
	for i := range n {
		id := repute.TokenID{}
		id.SetUint64(uint64(first + i))
		put(repute.Transfer{To: addr(10), TokenID: id}, addr(1))
		put(repute.Registered{TokenID: id, URI: fmt.Sprintf("https://a.example/%d\xff", first+i), Owner: addr(10)},
			addr(1))
		put(repute.NewFeedback{TokenID: id, Client: addr(20), Index: 1, Tag1: "quality", URI: "ipfs://f",
			Value: new(big.Int).Exp(big.NewInt(10), big.NewInt(30), nil)}, addr(2))
	}
	if err := eventdb.Apply(t.Context(), x.db, batch); err != nil {
		t.Fatal(err)
	}
	x.tip = b
	if _, err := x.db.Pool().Exec(t.Context(), "update chains set finalized_block = $1", int64(number)); err != nil {
		t.Fatal(err)
	}
	x.settle(t)
}

// settle waits until the change feed shows all changes: open transactions of other tests on the server hold it back.
func (x *index) settle(t *testing.T) {
	t.Helper()
	for shown := false; !shown; time.Sleep(10 * time.Millisecond) {
		err := x.db.Pool().QueryRow(t.Context(),
			"select not exists (select from changes where xid >= pg_snapshot_xmin(pg_current_snapshot()))").Scan(&shown)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// into returns a downloader that does not rest.
func (x *index) into(dir, format string) *downloader {
	d := newDownloader(downloadFlags{server: x.server.URL, dir: dir, format: format, chain: chainID}, "")
	d.rest = time.Millisecond
	return d
}

// content returns the files of a set, one after the other.
func content(t *testing.T, dir string, m *export.SetManifest) (out []byte) {
	t.Helper()
	for n, part := range m.Parts {
		name := partFile(dir, m, n)
		sum, _, err := hashFile(name)
		if err != nil || sum != part.SHA256 {
			t.Fatalf("%s: %v", name, err)
		}
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, raw...)
	}
	return out
}

// A connection that breaks again and again costs no byte twice, and the files are those of the manifest.
func TestDownloadContinues(t *testing.T) {
	t.Parallel()
	x := newIndex(t)
	x.add(t, 0, 50)
	dir := t.TempDir()
	var sent atomic.Int64
	const most = 3000 // bytes of one connection
	cut := func(h http.Handler, w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/manifest") {
			h.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		n, _ := w.Write(rec.Body.Bytes()[:min(most, rec.Body.Len())])
		sent.Add(int64(n))
	}
	x.between.Store(&cut)
	m, fetched, err := x.into(dir, export.NDJSON).set(t.Context(), "events")
	if err != nil {
		t.Fatal(err)
	}
	if m.Bytes < 3*most || fetched != m.Bytes || sent.Load() != m.Bytes {
		t.Errorf("%d bytes fetched, %d sent of %d", fetched, sent.Load(), m.Bytes)
	}
	if lines := bytes.Count(content(t, filepath.Join(dir, "events"), m), []byte("\n")); int64(lines) != m.Rows ||
		lines != 150 {
		t.Errorf("%d lines of %d rows", lines, m.Rows)
	}
	if _, fetched, err := x.into(dir, export.NDJSON).set(t.Context(), "events"); err != nil || fetched != 0 {
		t.Errorf("a complete download fetches %d bytes, %v", fetched, err)
	}
}

// Where the server can no longer make the parts, the newest state is downloaded instead. A file that is damaged is
// fetched again.
func TestDownloadBeginsAgain(t *testing.T) {
	t.Parallel()
	x := newIndex(t)
	x.add(t, 0, 3)
	dir := t.TempDir()
	at := filepath.Join(dir, "agents")
	first, _, err := x.into(dir, export.Parquet).set(t.Context(), "agents")
	if err != nil {
		t.Fatal(err)
	}
	damaged := partFile(at, first, 0)
	if err := os.WriteFile(damaged, []byte("damaged"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, fetched, err := x.into(dir, export.Parquet).set(t.Context(), "agents"); err != nil || fetched != first.Bytes {
		t.Errorf("%d bytes, %v", fetched, err)
	}
	if err := os.Remove(damaged); err != nil {
		t.Fatal(err)
	}
	x.add(t, 3, 2)
	if _, err := x.db.Pool().Exec(t.Context(),
		"update uris set uri = 'https://b.example' where uri like '%a.example/0%'"); err != nil {
		t.Fatal(err)
	}
	restarted := serveAgain(t, x.db) // the first server keeps the part as it was
	x.between.Store(&restarted)
	m, _, err := x.into(dir, export.Parquet).set(t.Context(), "agents")
	if err != nil || m.Block != x.tip.Number || m.Rows != 5 {
		t.Errorf("%+v, %v", m, err)
	}
	content(t, at, m)
}

// serveAgain returns a server of a database that has made nothing yet.
func serveAgain(t *testing.T, db *store.DB) func(http.Handler, http.ResponseWriter, *http.Request) {
	t.Helper()
	server, err := httpapi.NewServer(httpapi.ServerOptions{Limits: httpapi.Limits{Rate: -1},
		Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	export.Mount(server, db)
	h, err := server.Handler()
	if err != nil {
		t.Fatal(err)
	}
	return func(_ http.Handler, w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r) }
}

// A directory of another download is not overwritten by mistake.
func TestDownloadRefusesOtherDirectories(t *testing.T) {
	t.Parallel()
	x := newIndex(t)
	x.add(t, 0, 1)
	dir := t.TempDir()
	if _, _, err := x.into(dir, export.Parquet).set(t.Context(), "agents"); err != nil {
		t.Fatal(err)
	}
	var wrong *repute.InputError
	if _, _, err := x.into(dir, export.NDJSON).set(t.Context(), "agents"); !errors.As(err, &wrong) ||
		wrong.Field != "out" {
		t.Errorf("another format: %v", err)
	}
	again := x.into(dir, export.NDJSON)
	again.again = true
	if _, _, err := again.set(t.Context(), "agents"); err != nil {
		t.Errorf("with --again: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "agents", "*.parquet")); len(left) > 0 {
		t.Errorf("files of the other download are left: %v", left)
	}
	unknown := x.into(t.TempDir(), export.NDJSON)
	unknown.chain = 1
	if _, _, err := unknown.set(t.Context(), "agents"); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("an unknown chain: %v", err)
	}
}

// A part that the server sends wrongly is never taken.
func TestDownloadVerifies(t *testing.T) {
	t.Parallel()
	x := newIndex(t)
	x.add(t, 0, 2)
	lie := func(h http.Handler, w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/manifest") {
			h.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		_, _ = w.Write(bytes.ToUpper(rec.Body.Bytes()))
	}
	x.between.Store(&lie)
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	d := x.into(dir, export.NDJSON)
	if _, _, err := d.set(ctx, "agents"); !errors.Is(err, repute.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "agents", "part-*.ndjson")); len(files) > 0 {
		t.Errorf("wrong files are there: %v", files)
	}
}

// A server that is asked for a set may not choose where its bytes are written, nor what is sent to ClickHouse.
func TestDownloadRefusesHostileManifests(t *testing.T) {
	hash := strings.Repeat("0", 64)
	part := func(sha256 string) []export.SetPart { return []export.SetPart{{SHA256: sha256, URL: export.Prefix}} }
	for name, m := range map[string]export.SetManifest{
		"format":  {Set: "agents", Format: "x/../../../outside", ChainID: chainID, Parts: part(hash)},
		"set":     {Set: "agents; drop", Format: export.Parquet, ChainID: chainID, Parts: part(hash)},
		"hash":    {Set: "agents", Format: export.Parquet, ChainID: chainID, Parts: part("' or 1=1 --")},
		"chain":   {Set: "agents", Format: export.Parquet, ChainID: chainID + 1, Parts: part(hash)},
		"another": {Set: "events", Format: export.Parquet, ChainID: chainID, Parts: part(hash)},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_ = json.NewEncoder(w).Encode(m)
			}))
			defer server.Close()
			dir := t.TempDir()
			f := downloadFlags{sets: []string{"agents"}, format: export.Parquet, server: server.URL,
				dir: filepath.Join(dir, "a", "b"), chain: chainID}
			_, _, err := newDownloader(f, "").set(t.Context(), "agents")
			if !errors.Is(err, repute.ErrInvalid) {
				t.Errorf("a manifest with a wrong %s: %v", name, err)
			}
			err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err == nil && !e.IsDir() {
					t.Errorf("%s was written", path)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// The commands check their flags first, and print what was done.
func TestExportCommand(t *testing.T) {
	t.Parallel()
	x := newIndex(t)
	x.add(t, 0, 2)
	var out bytes.Buffer
	p := &cli.Program{Stdout: &out, Stderr: &out}
	good := downloadFlags{sets: []string{"agents", "scores"}, server: x.server.URL, dir: t.TempDir(),
		format: export.Parquet,
		chain:  chainID}
	if err := download(t.Context(), p, good); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); !strings.Contains(text, "agents: 2 rows in 1 part") ||
		!strings.Contains(text, "scores: 0 rows in 0 parts") {
		t.Errorf("printed %s", text)
	}
	for field, change := range map[string]func(*downloadFlags){
		"set": func(f *downloadFlags) { f.sets = []string{"all"} }, "out": func(f *downloadFlags) { f.dir = "" },
		"chain": func(f *downloadFlags) { f.chain = 0 }, "format": func(f *downloadFlags) { f.format = "csv" },
		"server": func(f *downloadFlags) { f.server = "nowhere" },
	} {
		f := good
		change(&f)
		var wrong *repute.InputError
		if err := download(t.Context(), p, f); !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	raw, err := os.ReadFile(filepath.Join(good.dir, "agents", manifestFile))
	var m export.SetManifest
	if err != nil || json.Unmarshal(raw, &m) != nil || m.Rows != 2 {
		t.Errorf("%s, %v", raw, err)
	}
}
