package resolver

import "testing"

func TestHostOf(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]string{
		"https://evil.example/a":            "evil.example",
		"HTTPS://EVIL.example/a":            "evil.example",
		"https://evil.example./a":           "evil.example",
		"https://evil.example:443/a":        "evil.example",
		"https://evil.example.:443/a":       "evil.example",
		"https://\uff45vil.example/a":       "evil.example", // a full-width e
		"https://%EF%BD%85vil.example/a":    "evil.example",
		"https://evil\u3002example\u3002/a": "evil.example", // ideographic full stops
		"https://b\u00fccher.example/a":     "xn--bcher-kva.example",
		"https://XN--bcher-kva.example/a":   "xn--bcher-kva.example",
		"https://evil.example:8443/a":       "evil.example:8443",
		"http://evil.example:80/a":          "evil.example",
		"http://evil.example:443/a":         "evil.example:443",
		"https://my_host.example/a":         "my_host.example",
		"https://[2001:DB8::1]/a":           "[2001:db8::1]",
		"https://[2001:db8::1]:8443/a":      "[2001:db8::1]:8443",
		"https://user:key@evil.example/a":   "evil.example",
		"ipfs://evil.example":               "",
		"https:///a":                        "",
		"https://./a":                       "",
		"data:,x":                           "",
	} {
		if got := HostOf(uri); got != want {
			t.Errorf("HostOf(%q) = %q, want %q", uri, got, want)
		}
		ref := Classify(uri)
		if (ref.Kind == KindHTTPS || ref.Kind == KindHTTP) && ref.Host != want {
			t.Errorf("Classify(%q) queues under %q, want %q", uri, ref.Host, want)
		}
	}
}
