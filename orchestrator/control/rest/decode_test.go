package rest

import (
	"errors"
	"testing"

	"repute"
)

// An error about a body names the field and says what it takes.
func TestDecodeNamesFields(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][2]string{
		`{"goal":"g","other":1}`: {"other", "known are goal, terms"},
		`{"a\nb":1}`:             {`a\nb`, "known are goal, terms"},
		`{"terms":{"other":1}}`:  {"other", "the fields of /openapi.json"}, // not in the outer object
		`{"goal":7}`:             {"goal", "a string"},
		`{"terms":7}`:            {"terms", "an object"},
		`7`:                      {"body", "a JSON object"},
	} {
		var into struct {
			Goal  string   `json:"goal"`
			Terms struct{} `json:"terms"`
		}
		var wrong *repute.InputError
		if err := decode([]byte(body), &into); !errors.As(err, &wrong) || wrong.Field != want[0] ||
			wrong.Hint != want[1] {
			t.Errorf("%s: %+v, want %q", body, err, want)
		}
	}
}
