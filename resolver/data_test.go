package resolver

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"net/url"
	"strings"
	"testing"
)

const sample = `{"name":"é?>~","x":100}`

func gz(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestData(t *testing.T) {
	std := base64.StdEncoding.EncodeToString([]byte(sample))
	zipped := base64.StdEncoding.EncodeToString(gz(t, []byte(sample)))
	for name, uri := range map[string]string{
		"base64":             "data:application/json;base64," + std,
		"charset":            "data:application/json;charset=utf-8;BASE64," + std,
		"no padding":         "data:application/json;base64," + strings.TrimRight(std, "="),
		"url alphabet":       "data:application/json;base64," + base64.URLEncoding.EncodeToString([]byte(sample)),
		"blanks":             "data:application/json;base64, " + std[:8] + "\n" + std[8:],
		"escaped base64":     "data:application/json;base64," + url.QueryEscape(std),
		"plain under base64": "data:application/json;base64," + sample,
		"escaped under b64":  "data:application/json;base64," + url.PathEscape(sample),
		"percent":            "data:application/json," + url.PathEscape(sample),
		"utf8":               "data:application/json;utf8," + sample,
		"no media type":      "data:," + sample,
		"gzip with level":    "data:application/json;enc=gzip;level=6;base64," + zipped,
		"gzip":               "data:application/json;enc=gzip;base64," + zipped,
		"gzip unannounced":   "data:application/json;base64," + zipped,
		"gzip but plain":     "data:application/json;enc=gzip;base64," + std,
	} {
		b, _, err := decodeData(uri, 1<<10)
		if err != nil || string(b) != sample {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
}

func TestDataKeepsLonePercent(t *testing.T) {
	const doc = `{"a":"100%","b":"5% off","c":"%zz"}`
	if b, _, err := decodeData("data:application/json,"+doc, 1<<10); err != nil || string(b) != doc {
		t.Errorf("%q, %v", b, err)
	}
}

func TestDataRefused(t *testing.T) {
	bomb := base64.StdEncoding.EncodeToString(gz(t, make([]byte, 1<<20)))
	big := base64.StdEncoding.EncodeToString(gz(t, []byte(strings.Repeat(sample, 20))))
	cut := base64.StdEncoding.EncodeToString(gz(t, []byte(sample))[:20])
	for _, c := range []struct {
		name, uri string
		limit     int64
		want      Reason
	}{
		{"no comma", "data:application/json;base64", 100, ReasonBadDataURI},
		{"empty", "data:application/json,", 100, ReasonBadDataURI},
		{"not base64", "data:application/json;base64,<html>", 100, ReasonBadBase64},
		{"zstd", "data:application/json;enc=zstd;base64,KLUv/Q==", 100, ReasonUnsupportedEncoding},
		{"not gzip", "data:application/json;enc=gzip;base64,AAAAAAAAAAAAAAAA", 100, ReasonBadGzip},
		{"cut gzip", "data:application/json;enc=gzip;base64," + cut, 100, ReasonBadGzip},
		{"plain too large", "data:," + strings.Repeat("x", 101), 100, ReasonTooLarge},
		{"text too large", "data:," + strings.Repeat("x", 1e6), 100, ReasonTooLarge},
		{"gzip too large", "data:;base64," + big, 100, ReasonTooLarge},
		{"bomb", "data:;enc=gzip;base64," + bomb, 1 << 20, ReasonRatio},
	} {
		_, _, err := decodeData(c.uri, c.limit)
		var e *Error
		if !errors.As(err, &e) || e.Reason != c.want || e.Retry {
			t.Errorf("%s: got %v, want final %s", c.name, err, c.want)
		}
	}
}

func TestDataExactlyAtLimit(t *testing.T) {
	if b, _, err := decodeData("data:,"+strings.Repeat("x", 100), 100); err != nil || len(b) != 100 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
}

func FuzzData(f *testing.F) {
	f.Add("data:application/json;base64,e30=")
	f.Add("data:application/json;enc=gzip;level=6;base64,H4sIAAAAAAAAA6uuBQBDv6ajAgAAAA==")
	f.Add("data:,%7b%")
	f.Fuzz(func(t *testing.T, uri string) {
		if !hasScheme(uri, "data:") {
			return
		}
		b, _, err := decodeData(uri, 256)
		var e *Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("untyped error %v", err)
		}
		if err == nil && (len(b) == 0 || len(b) > 256) {
			t.Errorf("%d bytes", len(b))
		}
	})
}

func TestInline(t *testing.T) {
	for uri, want := range map[string]string{`data:application/json;base64,eyJhIjoxfQ==`: `{"a":1}`,
		` {"a":1}`: `{"a":1}`, `https://example.com/a`: "", "ipfs://x": "", "": ""} {
		got, err := Inline(uri, 7)
		if string(got) != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", uri, got, err)
		}
	}
	if b, err := Inline(`{"a":10}`, 7); err == nil {
		t.Errorf("8 bytes of at most 7: %q", b)
	}
}
