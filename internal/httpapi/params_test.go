package httpapi_test

import (
	"errors"
	"testing"

	"repute"
	"repute/internal/httpapi"
)

// refused wants an error about a parameter that says what would do.
func refused(t *testing.T, err error, name string) {
	t.Helper()
	var input *repute.InputError
	if !errors.As(err, &input) || input.Field != name || input.Reason == "" || input.Hint == "" {
		t.Errorf("%v, want an error about %s", err, name)
	}
}

func TestPageSize(t *testing.T) {
	t.Parallel()
	for _, in := range []httpapi.Number{"0", "-1", "201", "+5", "x", "1e2", "9999999999999999999"} {
		_, err := httpapi.PageSize(in, 50, 200)
		refused(t, err, "limit")
	}
	for in, want := range map[httpapi.Number]int{"": 50, "1": 1, "200": 200} {
		if n, err := httpapi.PageSize(in, 50, 200); n != want || err != nil {
			t.Errorf("%q: %d, %v", in, n, err)
		}
	}
}

func TestFlag(t *testing.T) {
	t.Parallel()
	for _, in := range []httpapi.Flag{"2", "yes", "TRUE", " true"} {
		_, err := in.Bool("active")
		refused(t, err, "active")
		_, err = in.Optional("active")
		refused(t, err, "active")
	}
	for in, want := range map[httpapi.Flag]bool{"": false, "false": false, "0": false, "true": true, "1": true} {
		if on, err := in.Bool("active"); on != want || err != nil {
			t.Errorf("%q: %v, %v", in, on, err)
		}
		if on, err := in.Optional("active"); err != nil || (on == nil) != (in == "") || on != nil && *on != want {
			t.Errorf("%q, optional: %v, %v", in, on, err)
		}
	}
}
