package documents

import (
	"context"
	"testing"
	"time"

	"repute"
	"repute/resolver"
	"repute/store/denydb"
	"repute/store/docdb"
)

// web answers every URI with one file, from where final says.
type web struct {
	asked chan string
	final map[string]string
}

func (w web) FetchIfChanged(_ context.Context, uri string, _ resolver.Validators) (resolver.Document, error) {
	w.asked <- uri
	final := w.final[uri]
	if final == "" {
		final = uri
	}
	return resolver.Document{Bytes: []byte(goodFile), Source: resolver.SourceHTTPS, FinalURL: final,
		FetchedAt: time.Now()}, nil
}

// A denied host is denied in every spelling, also at the end of a redirect.
func TestDeniedHostSpellings(t *testing.T) {
	t.Parallel()
	spellings := []string{"https://evil.example/0", "https://EVIL.example./1", "https://\uff45vil.example/2",
		"https://evil.example:443/3", "https://evil.example:8443/4"}
	const around, honest = "https://honest.example/redirect", "https://honest.example/agent"
	db := openStore(t)
	if err := denydb.Deny(t.Context(), db, repute.Denial{Kind: repute.DenyHost, Value: "\uff25vil.example.",
		Reason: "court order"}, false); err != nil {
		t.Fatal(err)
	}
	c := register(t, db, append(spellings, around, honest)...)
	d := newLoop(t, db, Options{})
	w := web{make(chan string, 100), map[string]string{around: "https://\uff45vil.example.:8443/x"}}
	d.fetch = w
	defer running(t, d)()
	eventually(t, "the honest file is read", func() bool {
		return document(t, db, c, uint64(len(spellings)+1)).Status == repute.DocumentOK
	})
	for i := range len(spellings) + 1 {
		eventually(t, "the denial is recorded", func() bool {
			got := document(t, db, c, uint64(i))
			if got.Status == repute.DocumentOK {
				t.Fatalf("document %d is shown: %+v", i, got)
			}
			return got.Reason == docdb.ReasonDenied
		})
	}
	for len(w.asked) > 0 {
		if uri := <-w.asked; uri != around && uri != honest {
			t.Errorf("%s was fetched", uri)
		}
	}
}
