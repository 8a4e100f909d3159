package devnet

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"fmt"
	"net/url"
)

// Form is how an agent's URI leads to its document, or fails to.
type Form string

// Forms that lead to a document.
const (
	FormBase64   Form = "base64"    // data:application/json;base64,
	FormPercent  Form = "percent"   // data:application/json, percent-encoded
	FormUTF8     Form = "utf8"      // data:application/json;utf8,
	FormGzip     Form = "gzip"      // data: with enc=gzip
	FormInline   Form = "inline"    // the document where the URI belongs
	FormWeb      Form = "web"       // https
	FormIPFS     Form = "ipfs"      // one block
	FormBlocks   Form = "blocks"    // ipfs, several blocks
	FormDir      Form = "directory" // ipfs, a file in a directory
	FormVersion0 Form = "version 0" // ipfs, Qm…
	FormLegacy   Form = "legacy"    // a document with endpoints instead of services
	FormClone    Form = "clone"     // many agents share one URI
)

// Forms that do not.
const (
	FormEmpty     Form = "empty"
	FormHTML      Form = "html"      // a home page
	FormMissing   Form = "missing"   // 404
	FormMalformed Form = "malformed" // JSON that ends early
	FormJunk      Form = "junk"      // a word
	FormTampered  Form = "tampered"  // ipfs, the gateway sends other bytes
	FormLost      Form = "lost"      // ipfs, nobody provides it
)

// Broken says that no document can be had.
func (f Form) Broken() bool {
	switch f {
	case FormEmpty, FormHTML, FormMissing, FormMalformed, FormJunk, FormTampered, FormLost:
		return true
	}
	return false
}

// settlers are the forms of the first agents.
func settlers() (forms []Form) {
	for _, n := range []struct {
		form  Form
		count int
	}{
		{FormBase64, 9}, {FormWeb, 8}, {FormPercent, 4}, {FormIPFS, 4}, {FormGzip, 3}, {FormBlocks, 2},
		{FormUTF8, 1}, {FormInline, 1}, {FormDir, 1}, {FormVersion0, 1}, {FormLegacy, 1},
		{FormEmpty, 2}, {FormHTML, 1}, {FormMissing, 1}, {FormMalformed, 1}, {FormJunk, 1},
		{FormTampered, 1}, {FormLost, 1}, {FormClone, 7},
	} {
		for range n.count {
			forms = append(forms, n.form)
		}
	}
	return forms
}

// publish puts a document where its form wants it and returns the URI. Slug
// names it in paths.
func (p *Population) publish(form Form, slug string, body []byte) (string, error) {
	switch form {
	case FormIPFS, FormBlocks, FormVersion0, FormTampered, FormLost, FormDir:
		return p.publishIPFS(form, body)
	case FormWeb, FormLegacy, FormHTML, FormMissing, FormMalformed:
		return p.publishWeb(form, slug, body), nil
	case FormClone:
		return p.docs.Serve("/clones/agent.json", "application/json", body), nil
	}
	return inline(form, body)
}

// inline encodes a document as the URI itself.
func inline(form Form, body []byte) (string, error) {
	switch form {
	case FormBase64:
		return "data:application/json;base64," + base64.StdEncoding.EncodeToString(body), nil
	case FormPercent:
		return "data:application/json," + url.PathEscape(string(body)), nil
	case FormUTF8:
		return "data:application/json;utf8," + string(body), nil
	case FormGzip:
		packed, err := compress(body)
		return "data:application/json;enc=gzip;level=6;base64," + base64.StdEncoding.EncodeToString(packed), err
	case FormInline:
		return string(body), nil
	case FormJunk:
		return "tinybanana", nil
	}
	return "", nil
}

func (p *Population) publishIPFS(form Form, body []byte) (string, error) {
	if form == FormDir {
		id, err := p.docs.PinDir(map[string][]byte{"agent.json": body})
		return "ipfs://" + id + "/agent.json", err
	}
	o := PinOptions{V0: form == FormVersion0, Tampered: form == FormTampered, Lost: form == FormLost}
	if form == FormBlocks {
		o.ChunkSize = 256
	}
	id, err := p.docs.Pin(body, o)
	return "ipfs://" + id, err
}

func (p *Population) publishWeb(form Form, slug string, body []byte) string {
	p.pages++
	path := fmt.Sprintf("/%s/%d.json", slug, p.pages)
	switch form {
	case FormHTML:
		return p.docs.Serve("/"+slug+"/", "text/html; charset=utf-8",
			[]byte("<!doctype html><title>"+slug+"</title><h1>Welcome</h1>"))
	case FormMalformed:
		body = body[:len(body)/2]
	case FormMissing:
		// The page beside it exists, so the URL leads to the right host.
		return p.docs.Serve(path, "application/json", body) + ".gone"
	}
	return p.docs.Serve(path, "application/json", body)
}

// compress is deterministic: gzip's header carries no time unless told.
func compress(body []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, 6)
	if err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress: %w", err)
	}
	return b.Bytes(), nil
}
