package resolver

import (
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	cidV0  = "QmYwAPJzv5CZsnA625s3Xf2nemtYgPpHdWEz79ojWnPbdG"
	cidV1  = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
	cidRaw = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
)

func TestClassify(t *testing.T) {
	ipfs := func(cid, path string) Ref { return Ref{Kind: KindIPFS, Host: "ipfs", CID: cid, Path: path} }
	at := func(r Ref, gateway string) Ref { r.Gateway = gateway; return r }
	no := func(r Reason) Ref { return Ref{Kind: KindUnsupported, Reason: r} }
	for uri, want := range map[string]Ref{
		"":                           {Kind: KindEmpty, Reason: ReasonEmpty},
		" \n":                        {Kind: KindEmpty, Reason: ReasonEmpty},
		`{"type":"x"}`:               {Kind: KindJSON},
		"\ufeff [1]":                 {Kind: KindJSON},
		"data:application/json,{}":   {Kind: KindData},
		"DATA:;base64,e30=":          {Kind: KindData},
		"https://Example.com/a.json": {Kind: KindHTTPS, Host: "example.com"},
		"HTTPS://example.com:8443/a": {Kind: KindHTTPS, Host: "example.com:8443"},
		"http://example.com":         {Kind: KindHTTP, Host: "example.com"},
		"https://":                   no(ReasonBadURL),
		"https://a b/":               no(ReasonBadURL),
		"https://exa\x00mple.com":    no(ReasonBadURL),
		"https://exa\xffmple.com":    no(ReasonBadURL),
		"https://exa%FFmple.com":     no(ReasonBadURL),
		"https://" + strings.Repeat("a.", 200) + "com": no(ReasonBadURL),
		"ipfs://" + cidV0:                              ipfs(cidV0, ""),
		"IPFS://" + cidV1 + "/a/b.json":                ipfs(cidV1, "a/b.json"),
		"ipfs://ipfs/" + cidV0:                         ipfs(cidV0, ""),
		"ipfs:" + cidV0:                                ipfs(cidV0, ""),
		"ipfs://" + cidV1 + "/a%20b?x#y":               ipfs(cidV1, "a b"),
		"ipfs://" + cidV1 + "/../../x/":                ipfs(cidV1, "x"),
		cidV0:                                          ipfs(cidV0, ""),
		cidRaw + "/x":                                  ipfs(cidRaw, "x"),
		"/ipfs/" + cidV0:                               ipfs(cidV0, ""),
		"https://ipfs.io/ipfs/" + cidV0 + "/m.json":    at(ipfs(cidV0, "m.json"), "https://ipfs.io"),
		"https://" + cidV1 + ".ipfs.w3s.link/m.json":   at(ipfs(cidV1, "m.json"), "https://w3s.link"),
		"http://dweb.link/ipfs/" + cidV1:               ipfs(cidV1, ""),
		"https://me.mypinata.cloud/ipfs/" + cidRaw:     at(ipfs(cidRaw, ""), "https://me.mypinata.cloud"),
		"https://evil.example/ipfs/" + cidV0:           {Kind: KindHTTPS, Host: "evil.example"},
		"https://ipfs.io/ipfs/nonsense":                {Kind: KindHTTPS, Host: "ipfs.io"},
		"ipfs://0x8004a169fb4a3325136eb29fa0ceb6d2e53": no(ReasonBadCID),
		"ipfs://":               no(ReasonBadCID),
		"ipfs://ipns/x.example": no(ReasonBadCID),
		// SHA-1 and a digest cut to four bytes prove nothing.
		"ipfs://bafkrcfbtw42xwoqm3m4q5ue4hluu4tivaqyn4xy": no(ReasonBadCID),
		"ar://Qm":          no(ReasonUnsupportedScheme),
		"ipns://k51":       no(ReasonUnsupportedScheme),
		"javascript:x":     no(ReasonUnsupportedScheme),
		`c:\agent.json`:    no(ReasonNotURI),
		"/Users/me/a.json": no(ReasonNotURI),
		"tinybanana":       no(ReasonNotURI),
		"0x8004A169FB4a3325136EB29fA0ceB6D2e539a432": no(ReasonNotURI),
		"\xff\xfe\x00": no(ReasonNotURI),
	} {
		got := Classify(uri)
		got.URL = ""
		if got != want {
			t.Errorf("Classify(%q)\n got %+v\nwant %+v", uri, got, want)
		}
	}
}

func TestClassifyURLIsTrimmed(t *testing.T) {
	if got := Classify("\t https://example.com/ \n").URL; got != "https://example.com/" {
		t.Errorf("URL = %q", got)
	}
}

func FuzzClassify(f *testing.F) {
	for _, s := range []string{"", "data:,x", "ipfs://" + cidV0 + "/x", "https://ipfs.io/ipfs/" + cidV1, "a:", "{",
		"http://[::1", cidRaw} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		r := Classify(uri)
		refused := r.Kind == KindEmpty || r.Kind == KindUnsupported
		if refused != (r.Reason != "") {
			t.Errorf("kind %q with reason %q", r.Kind, r.Reason)
		}
		if len(r.Host) > maxHostText || !utf8.ValidString(r.Host) || strings.ContainsRune(r.Host, 0) {
			t.Errorf("host %q", r.Host)
		}
		if r.Kind == KindIPFS {
			again := Classify("ipfs://" + r.CID)
			if again.CID != r.CID {
				t.Errorf("CID %q reads back as %q", r.CID, again.CID)
			}
			if strings.HasPrefix(r.Path, "/") || strings.HasPrefix(r.Path, "..") {
				t.Errorf("path %q leaves the CID", r.Path)
			}
		}
	})
}
