package signed_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"net/http"
	"testing"

	"repute"
	"repute/agent/signed"
)

// FuzzDecodePromise: untrusted text is refused as invalid input, and what is read is written as it was.
func FuzzDecodePromise(f *testing.F) {
	good := `{"from":"0x0100000000000000000000000000000000000000","to":"0x0200000000000000000000000000000000000000","amount":"1",` +
		`"currency":"ETH","taskHash":"0x0100000000000000000000000000000000000000000000000000000000000000","timestamp":1700000000,"signature":"0x12"}`
	for _, text := range []string{good, `{}`, `[]`, `{"timestamp":1e99}`, `{"amount":"-1"}`} {
		f.Add(base64.StdEncoding.EncodeToString([]byte(text)))
	}
	f.Add("eyJhbGciOiJIUzI1NiJ9.e30.x")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := signed.DecodePromise(text)
		if err != nil {
			if !errors.Is(err, repute.ErrInvalid) {
				t.Fatal(err)
			}
			return
		}
		again, err := p.Encode()
		if err != nil {
			t.Fatal(err)
		}
		q, err := signed.DecodePromise(again)
		if err != nil || q.Amount.Cmp(p.Amount) != 0 || q.From != p.From || q.TaskHash != p.TaskHash ||
			q.Timestamp != p.Timestamp ||
			!bytes.Equal(q.Signature, p.Signature) {
			t.Fatalf("%+v %+v %v", p, q, err)
		}
	})
}

// FuzzParseHTTP: stored answers of strangers are read without a panic, and valid only with a signature.
func FuzzParseHTTP(f *testing.F) {
	f.Add([]byte("HTTP/1.1 200 OK\r\nX-Agent-ID: 42\r\nX-Agent-Registry: eip155:1:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432\r\n\r\n{}"))
	f.Add([]byte("HTTP/2 200\nContent-Encoding: gzip\n\n\x1f\x8b"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, h, body, err := signed.ParseHTTP(bytes.NewReader(raw))
		if err != nil {
			return
		}
		if r, err := signed.ReadResponse(h); err == nil {
			_, _ = r.Verify(body) // it must not panic
		}
	})
}

// FuzzReadRequest: the headers of a client are refused as invalid input.
func FuzzReadRequest(f *testing.F) {
	f.Add("0x0100000000000000000000000000000000000000", "1700000000", "0x12")
	f.Add("", "", "")
	f.Fuzz(func(t *testing.T, client, timestamp, signature string) {
		h := http.Header{http.CanonicalHeaderKey(signed.HeaderClient): {client},
			http.CanonicalHeaderKey(signed.HeaderClientTimestamp): {timestamp},
			http.CanonicalHeaderKey(signed.HeaderClientSignature): {signature}}
		if _, err := signed.ReadRequest(h); err != nil && !errors.Is(err, repute.ErrInvalid) {
			t.Fatal(err)
		}
	})
}
