package indexclient_test

import (
	"errors"
	"testing"

	"repute"
	"repute/internal/indexclient"
)

// TestIntents asks for what is wanted, takes no more than that, and refuses an answer of nobody.
func TestIntents(t *testing.T) {
	t.Parallel()
	const first = `{"kind":"intent","domain":"a.example","agent":null,"name":"book_hotel","score":0.8,"similarity":0.7}`
	c, asked := index(t, 200, `{"items":[`+first+
		`,{"kind":"skill","domain":null,"agent":"eip155:1:0x1:7","name":"hotels","score":0.5,`+
		`"similarity":null}],"margin":0.3,"unsure":false,"next":null,"by":"meaning"}`)
	got, err := c.Intents(t.Context(), "a room & a bed", "", 2)
	want := indexclient.Found{Kind: "intent", Domain: "a.example", Name: "book_hotel", Score: 0.8, Similarity: 0.7}
	if err != nil || len(got.Items) != 2 || got.Items[0] != want || got.Items[1].Agent != "eip155:1:0x1:7" ||
		got.Margin != 0.3 || got.Unsure {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := c.Intents(t.Context(), "room", "intent", 1); err != nil || len(got.Items) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if len(*asked) != 2 || (*asked)[0] != "/intents?limit=2&q=a+room+%26+a+bed" ||
		(*asked)[1] != "/intents?kind=intent&limit=1&q=room" {
		t.Errorf("%q", *asked)
	}
	for answer, want := range map[string]error{`{"items":[{"kind":"intent","name":"x"}]}`: repute.ErrUnavailable,
		`{"items":[{"domain":"a.example"}]}`: repute.ErrUnavailable, `<html>`: repute.ErrUnavailable,
		`{"items":[],"unsure":true}`: nil} {
		c, _ := index(t, 200, answer)
		if _, err := c.Intents(t.Context(), "room", "", 5); !errors.Is(err, want) {
			t.Errorf("%s: %v", answer, err)
		}
	}
	c, _ = index(t, 404, `{}`)
	if _, err := c.Intents(t.Context(), "room", "", 5); !errors.Is(err, repute.ErrNotFound) {
		t.Errorf("%v", err)
	}
}
