package devnet_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/ipfs/go-cid"

	"repute/devnet"
)

func documents(t *testing.T) *devnet.Documents {
	t.Helper()
	docs, err := devnet.StartDocuments("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := docs.Close(); err != nil {
			t.Error(err)
		}
	})
	return docs
}

// get returns the status, the content type and the body.
func get(t *testing.T, docs *devnet.Documents, url string) (int, string, []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{RootCAs: docs.Roots()}}}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), body
}

func TestDocumentsServePages(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	url := docs.Serve("/a.json", "application/json", []byte(`{"a":1}`))
	if code, kind, body := get(t, docs, url); code != 200 || kind != "application/json" || string(body) != `{"a":1}` {
		t.Errorf("page: %d %q %q", code, kind, body)
	}
	if code, _, _ := get(t, docs, docs.URL()+"/missing"); code != 404 {
		t.Errorf("missing page: %d", code)
	}
}

// pin fails the test when the file cannot be pinned.
func pin(t *testing.T, docs *devnet.Documents, body []byte, o devnet.PinOptions) cid.Cid {
	t.Helper()
	s, err := docs.Pin(body, o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cid.Decode(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func hashes(c cid.Cid, block []byte) bool {
	sum, err := c.Prefix().Sum(block)
	return err == nil && sum.Equals(c)
}

func TestGatewayServesVerifiableBlocks(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	small := []byte(`{"name":"small"}`)
	c := pin(t, docs, small, devnet.PinOptions{})
	code, kind, block := get(t, docs, docs.URL()+"/ipfs/"+c.String()+"?format=raw")
	if code != 200 || kind != "application/vnd.ipld.raw" || !bytes.Equal(block, small) || !hashes(c, block) {
		t.Errorf("raw leaf: %d %q %q", code, kind, block)
	}
	if code, _, _ := get(t, docs, docs.URL()+"/ipfs/"+c.String()); code == 200 {
		t.Error("the gateway deserializes: a reader could skip verification")
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), 256)
	c = pin(t, docs, large, devnet.PinOptions{ChunkSize: 1024})
	_, _, root := get(t, docs, docs.URL()+"/ipfs/"+c.String()+"?format=raw")
	if !hashes(c, root) || bytes.Contains(root, large[:64]) {
		t.Error("a file of several blocks has a root without content")
	}
	code, kind, car := get(t, docs, docs.URL()+"/ipfs/"+c.String()+"?format=car")
	if code != 200 || !bytes.Contains(car, large[:1024]) {
		t.Errorf("car: %d %q, %d bytes", code, kind, len(car))
	}
}

func TestGatewayVariants(t *testing.T) {
	t.Parallel()
	docs := documents(t)
	v0 := pin(t, docs, []byte("old"), devnet.PinOptions{V0: true})
	if v0.Version() != 0 || v0.String()[:2] != "Qm" {
		t.Errorf("version 0: %s", v0)
	}
	if code, _, block := get(t, docs, docs.URL()+"/ipfs/"+v0.String()+"?format=raw"); code != 200 ||
		!hashes(v0, block) {
		t.Errorf("version 0 block: %d", code)
	}
	lie := pin(t, docs, []byte("truth"), devnet.PinOptions{Tampered: true})
	if code, _, block := get(t, docs, docs.URL()+"/ipfs/"+lie.String()+"?format=raw"); code != 200 ||
		hashes(lie, block) {
		t.Errorf("tampered: %d %q", code, block)
	}
	lost := pin(t, docs, []byte("gone"), devnet.PinOptions{Lost: true})
	if code, _, _ := get(t, docs, docs.URL()+"/ipfs/"+lost.String()+"?format=raw"); code < 400 {
		t.Errorf("lost: %d", code)
	}
	dir, err := docs.PinDir(map[string][]byte{"agent.json": []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if code, _, block := get(t, docs, docs.URL()+"/ipfs/"+dir+"/agent.json?format=car"); code != 200 ||
		!bytes.Contains(block, []byte("{}")) {
		t.Errorf("file in directory: %d %q", code, block)
	}
}
