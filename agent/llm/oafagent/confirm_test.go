package oafagent_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"testing"

	"repute/agent/llm"
	"repute/agent/llm/oafagent"
	"repute/internal/modeltest"
	"repute/manifest/oaf"
)

// confirmed has a conversation that calls files__write_file once, and returns what a person was asked and what the
// model was told.
func confirmed(t *testing.T, input string) (names, texts []string, told string) {
	t.Helper()
	def := &oaf.Agent{Slug: "acme/a", Body: "x", Servers: []oaf.Server{served(t, oaf.TransportHTTP, "")},
		Config: oaf.Config{RequireConfirmation: true}}
	s := modeltest.New(call("files__write_file", input), modeltest.Turn{Text: "end"})
	a, err := prepare(t, s, def, nil)
	ok(t, err)
	_, err = a.Run(t.Context(), oafagent.Session{ID: "s", Ledger: &llm.Meter{},
		Confirm: func(_ context.Context, name, text string) error {
			names, texts = append(names, name), append(texts, text)
			return nil
		}}, "go")
	ok(t, err)
	return names, texts, last(s.Seen()[1])
}

// An approval is bound to the input: its name has the digest of the input, which a person is shown whole.
func TestConfirmedInput(t *testing.T) {
	for _, path := range []string{"/a", "/b", "/" + strings.Repeat("c", 1900)} {
		input := fmt.Sprintf(`{"path":%q}`, path)
		names, texts, told := confirmed(t, input)
		want := fmt.Sprintf("1-files__write_file-%.16s", fmt.Sprintf("%x", sha256.Sum256([]byte(input))))
		if !slices.Equal(names, []string{want}) || !strings.HasSuffix(texts[0], input) {
			t.Errorf("asked about %q, want %s: %q", names, want, texts)
		}
		if told != "write_file of "+path {
			t.Errorf("told %.100q", told)
		}
	}
}

// What a person could not see whole, or could read in two ways, is refused, and nobody is asked about it.
func TestUnseenInput(t *testing.T) {
	for input, want := range map[string]string{
		fmt.Sprintf(`{"path":"/%s"}`, strings.Repeat("c",
			2000)): "has 2012 bytes, and a person who confirms the call is shown at most 2000",
		`{"path":"/a","path":"/b"}`:               "twice",
		`{"path":"/a","more":{"x":1,"\u0078":2}}`: "twice",
	} {
		if names, _, told := confirmed(t, input); len(names) != 0 || !strings.Contains(told, want) {
			t.Errorf("asked about %q, told %.200q, want %q", names, told, want)
		}
	}
}
