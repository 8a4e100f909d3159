package resolver

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// form is one of the spellings in which agents' documents are found on chain.
type form struct {
	name   string
	is     func(uri string) bool // recognizes real ones
	mine   string                // one of our own
	kind   Kind
	reason Reason // of Fetch, "" where the bytes are read without a network
	absent bool   // not in the real sample
}

// forms are all of them. mine must be recognized by is, and by no other form's before it.
func forms(t *testing.T) []form {
	std := base64.StdEncoding.EncodeToString([]byte(sample))
	zipped := base64.StdEncoding.EncodeToString(gz(t, []byte(sample)))
	prefix := func(p string) func(string) bool { return func(s string) bool { return strings.HasPrefix(s, p) } }
	body := func(s string) string { _, b, _ := strings.Cut(s, ","); return b }
	header := func(s string) string { h, _, _ := strings.Cut(s, ","); return h }
	is64 := func(s string) bool { return strings.HasPrefix(s, "data:") && strings.HasSuffix(header(s), ";base64") }
	return []form{
		{"empty", func(s string) bool { return strings.TrimSpace(s) == "" }, "", KindEmpty, ReasonEmpty, false},
		{"gzip with level", func(s string) bool { return is64(s) && strings.Contains(header(s), "enc=gzip;level=") },
			"data:application/json;enc=gzip;level=9;base64," + zipped, KindData, "", false},
		{"gzip", func(s string) bool { return is64(s) && strings.Contains(header(s), "enc=gzip") },
			"data:application/json;enc=gzip;base64," + zipped, KindData, "", true},
		{"another compression", func(s string) bool { return is64(s) && strings.Contains(header(s), "enc=") },
			"data:application/json;enc=br;base64," + std, KindData, ReasonUnsupportedEncoding, true},
		{"plain JSON behind base64", func(s string) bool { return is64(s) && strings.HasPrefix(body(s), "{") },
			"data:application/json;base64," + sample, KindData, "", true},
		{"base64 without padding", func(s string) bool {
			return is64(s) && len(strings.TrimRight(body(s), "="))%4 != 0 && !strings.HasSuffix(s, "=")
		},
			"data:application/json;base64," + base64.RawStdEncoding.EncodeToString([]byte(sample+" ")), KindData, "",
			true},
		{"base64", is64, "data:application/json;base64," + std, KindData, "", false},
		{"utf8", prefix("data:application/json;utf8,"), "data:application/json;utf8," + sample, KindData, "", true},
		{"percent", func(s string) bool { return strings.HasPrefix(s, "data:") },
			"data:application/json," + url.PathEscape(sample), KindData, "", true},
		{"bare JSON", prefix("{"), sample, KindJSON, "", false},
		{"ipfs, no CID", prefix("ipfs://0x"), "ipfs://0x0000000000000000000000000000000000000001", KindUnsupported,
			ReasonBadCID, true},
		{"ipfs twice", prefix("ipfs://ipfs/"), "ipfs://ipfs/" + cidV0, KindIPFS, ReasonNoGateway, true},
		{"ipfs with path", func(s string) bool { return strings.HasPrefix(s, "ipfs://") && strings.Count(s, "/") > 2 },
			"ipfs://" + cidV1 + "/agent.json", KindIPFS, ReasonNoGateway, true},
		{"ipfs", func(s string) bool { return strings.HasPrefix(s, "ipfs://") && Classify(s).Kind == KindIPFS },
			"ipfs://" + cidV1, KindIPFS, ReasonNoGateway, false},
		{"ipfs, words", prefix("ipfs://"), "ipfs://placeholder", KindUnsupported, ReasonBadCID, true},
		{"bare CIDv0", prefix("Qm"), cidV0, KindIPFS, ReasonNoGateway, true},
		{"bare CIDv1", prefix("baf"), cidRaw, KindIPFS, ReasonNoGateway, true},
		{"gateway with path", func(s string) bool {
			return strings.HasPrefix(s, "https://") &&
				strings.Contains(s, "/ipfs/")
		}, "https://ipfs.io/ipfs/" + cidV0,
			KindIPFS, ReasonTimeout, false},
		{"gateway with subdomain", func(s string) bool { return strings.Contains(s, ".ipfs.") },
			"https://" + cidV1 + ".ipfs.dweb.link/a.json",
			KindIPFS, ReasonTimeout, false},
		{"http", prefix("http://"), "http://agents.example/a.json", KindHTTP, ReasonHTTPDisabled, true},
		{"home page", func(s string) bool {
			u, err := url.Parse(s)
			return err == nil && u.Scheme == "https" && strings.Trim(u.Path, "/") == ""
		},
			"https://agents.example", KindHTTPS, ReasonTimeout, false},
		{"https", prefix("https://"), "https://agents.example/agent.json", KindHTTPS, ReasonTimeout, false},
		{"arweave", prefix("ar://"), "ar://abc", KindUnsupported, ReasonUnsupportedScheme, true},
		{"hex address", prefix("0x"), "0x8004000000000000000000000000000000000001", KindUnsupported, ReasonNotURI,
			true},
		{"windows path", func(s string) bool { return len(s) > 2 && s[1:3] == `:\` }, `c:\agents\one.json`,
			KindUnsupported,
			ReasonNotURI, true},
		{"words", func(string) bool { return true }, "tinyapple", KindUnsupported, ReasonNotURI, false},
	}
}

func TestForms(t *testing.T) {
	all := forms(t)
	c := client(t, Options{})
	for i, f := range all {
		if first := slices.IndexFunc(all, func(o form) bool { return o.is(f.mine) }); first != i {
			t.Errorf("%s: its own sample is %s", f.name, all[first].name)
		}
		if ref := Classify(f.mine); ref.Kind != f.kind {
			t.Errorf("%s: kind %s", f.name, ref.Kind)
		}
		if f.reason == ReasonTimeout {
			continue // would need a network
		}
		doc, err := c.Fetch(t.Context(), f.mine)
		if reasonOf(err) != f.reason || f.reason == "" && strings.TrimSpace(string(doc.Bytes)) != sample {
			t.Errorf("%s: %q, %v, want %q", f.name, doc.Bytes, err, f.reason)
		}
	}
}

// Every real URI has one of the forms, and is classified as that form says.
func TestFormsOfRealURIs(t *testing.T) {
	all := forms(t)
	seen := map[string]int{}
	for _, uri := range mainnetURIs(t) {
		s := strings.TrimSpace(uri)
		f := all[slices.IndexFunc(all, func(f form) bool { return f.is(s) })]
		seen[f.name]++
		if ref := Classify(uri); ref.Kind != f.kind {
			t.Errorf("%.100q: %s, but %s", uri, f.name, ref.Kind)
		}
	}
	for _, f := range all {
		if !f.absent && seen[f.name] == 0 {
			t.Errorf("no real sample of %s", f.name)
		}
	}
	t.Log(seen)
}
