package store_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"repute"
	"repute/store"
	"repute/store/docdb"
)

func multihash(b []byte) []byte {
	sum := sha256.Sum256(b)
	return append([]byte{0x12, 0x20}, sum[:]...)
}

func blockOf(text string) docdb.Block {
	return docdb.Block{Multihash: multihash([]byte(text)), Data: []byte(text)}
}

func count(t *testing.T, db *store.DB, table string) (n int) {
	t.Helper()
	ok(t, db.Pool().QueryRow(t.Context(), "select count(*) from "+table).Scan(&n))
	return n
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	db, _ := queue(t, "ipfs://a/1", "ipfs://a/2", "https://b.example")
	due := claim(t, db, "")
	dir, part, whole := blockOf("directory"), blockOf("part"), blockOf("whole")
	dir.Node = true
	save(t, db, docdb.FetchResult{URIID: due["ipfs://a/1"].ID, Body: []byte("part part"), Source: "ipfs",
		FetchedAt: fetched,
		Blocks:    []docdb.Block{dir, part}})
	save(t, db, docdb.FetchResult{URIID: due["ipfs://a/2"].ID, Body: whole.Data, Source: "ipfs", FetchedAt: fetched,
		Blocks: []docdb.Block{whole, dir}})
	save(t, db, docdb.FetchResult{URIID: due["https://b.example"].ID, Body: []byte("<html>"), Source: "https",
		FetchedAt: fetched})
	for _, want := range []docdb.Block{dir, part, whole, blockOf("part part"), blockOf("<html>")} {
		got, err := docdb.ReadBlock(t.Context(), db, want.Multihash)
		if err != nil || !bytes.Equal(got, want.Data) {
			t.Errorf("%s: %q, %v", want.Data, got, err)
		}
	}
	for text, known := range map[string]bool{"directory": true, "part": false, "whole": false, "<html>": false} {
		if _, err := docdb.ProofBlock(t.Context(), db, multihash([]byte(text))); (err == nil) != known || !known &&
			!errors.Is(err, repute.ErrNotFound) {
			t.Errorf("proof %s: %v", text, err)
		}
	}
	part.Node = true // of another document
	save(t, db, docdb.FetchResult{URIID: due["ipfs://a/1"].ID, Body: []byte("another"), Source: "ipfs",
		FetchedAt: fetched, Blocks: []docdb.Block{part}})
	if _, err := docdb.ProofBlock(t.Context(), db, part.Multihash); err != nil {
		t.Errorf("a part that is a node as well: %v", err)
	}
	if n := count(t, db, "ipfs_blocks"); n != 2 {
		t.Errorf("%d blocks: a whole document is kept twice", n)
	}
	for _, unknown := range [][]byte{nil, {0x12, 0x20}, multihash([]byte("unknown")), dir.Multihash[2:],
		append([]byte{0x16, 0x20}, whole.Multihash[2:]...)} {
		if got, err := docdb.ReadBlock(t.Context(), db, unknown); !errors.Is(err, repute.ErrNotFound) {
			t.Errorf("%x: %q, %v", unknown, got, err)
		}
	}
}

// Documents of one directory are saved side by side, in any order of their blocks.
func TestBlocksSharedAtOnce(t *testing.T) {
	t.Parallel()
	const documents = 8
	uris := make([]string, documents)
	for i := range uris {
		uris[i] = fmt.Sprintf("ipfs://a/%d", i)
	}
	db, _ := queue(t, uris...)
	due := claim(t, db, "")
	var shared []docdb.Block
	for i := range 20 {
		shared = append(shared, blockOf(fmt.Sprintf("directory %d", i)))
	}
	var wg sync.WaitGroup
	for i, uri := range uris {
		wg.Go(func() {
			blocks := slices.Concat(shared[i:], shared[:i])
			err := docdb.SaveDocuments(t.Context(), db,
				docdb.FetchResult{URIID: due[uri].ID, Body: []byte(uri), Source: "ipfs",
					FetchedAt: fetched, Blocks: blocks})
			if err != nil {
				t.Errorf("%s: %v", uri, err)
			}
		})
	}
	wg.Wait()
	if n, links := count(t, db, "ipfs_blocks"), count(t, db, "document_blocks"); n != len(shared) ||
		links != documents*len(shared) {
		t.Errorf("%d blocks, %d links", n, links)
	}
}

// Bytes that were dropped are asked for anew: their validators would bring a "not
// modified", and nothing else, for ever.
func TestDroppedBytesAreAskedForWithoutValidators(t *testing.T) {
	t.Parallel()
	const uri = "https://a.example/agent.json"
	db, _ := queue(t, uri)
	u := claim(t, db, "")[uri]
	save(t, db, docdb.FetchResult{URIID: u.ID, Body: []byte("{}"), Source: "https", ETag: `"1"`, LastModified: "then",
		FetchedAt: fetched,
		NextDue:   fetched})
	if u = claim(t, db, "")[uri]; u.ETag != `"1"` || u.LastModified != "then" {
		t.Errorf("kept: %+v", u)
	}
	ok(t, docdb.ReleaseURI(t.Context(), db, u))
	sqlExec(t, db, "update documents set body = null")
	if u = claim(t, db, "")[uri]; u.URI != uri || u.ETag != "" || u.LastModified != "" {
		t.Errorf("dropped: %+v", u)
	}
}
