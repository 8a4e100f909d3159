package control

import (
	"encoding/json"
	"testing"
)

// What is stored is read or an error: nothing of it is left out in silence.
func TestStoredJSON(t *testing.T) {
	t.Parallel()
	for _, text := range []string{``, `null`} {
		if p, err := planOf(json.RawMessage(text)); p != nil || err != nil {
			t.Errorf("plan of %q: %v, %v", text, p, err)
		}
		if s, err := summaryOf(json.RawMessage(text)); s != nil || err != nil {
			t.Errorf("summary of %q: %v, %v", text, s, err)
		}
		if r, err := reasonsOf(json.RawMessage(text)); r == nil || len(r) > 0 || err != nil {
			t.Errorf("reasons of %q: %v, %v", text, r, err)
		}
	}
	for _, text := range []string{`7`, `"x"`, `{`, `{"steps":7,"keyActions":7}`} {
		if _, err := planOf(json.RawMessage(text)); err == nil {
			t.Errorf("plan of %q is no error", text)
		}
		if _, err := summaryOf(json.RawMessage(text)); err == nil {
			t.Errorf("summary of %q is no error", text)
		}
		if _, err := reasonsOf(json.RawMessage(text)); err == nil {
			t.Errorf("reasons of %q are no error", text)
		}
	}
}
