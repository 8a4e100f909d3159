package synth

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkServer measures what the product asks most: logs of a range, batches of headers, and single calls.
func BenchmarkServer(b *testing.B) {
	h, err := Open(b.Context(), b.TempDir(), Spec{Shape: Base, Seed: 1, Events: 20_000})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = h.Close() })
	s, err := NewServer(h)
	if err != nil {
		b.Fatal(err)
	}
	srv := httptest.NewServer(s)
	b.Cleanup(srv.Close)
	var headers []string
	for n := range 50 {
		headers = append(headers,
			fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"eth_getBlockByNumber","params":["%#x",false]}`, n, 1000+n))
	}
	for name, body := range map[string]string{
		"logs":    `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":[{"fromBlock":"0x64","toBlock":"0x600"}]}`,
		"headers": "[" + strings.Join(headers, ",") + "]",
		"head":    `{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				resp, err := http.Post(srv.URL, "application/json", strings.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, resp.Body)
				if resp.Body.Close(); err != nil {
					b.Fatal(err)
				}
				b.SetBytes(n)
			}
		})
	}
}
