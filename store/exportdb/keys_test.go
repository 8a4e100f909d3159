package exportdb_test

import (
	"errors"
	"testing"

	"repute"
	"repute/store/exportdb"
)

// Keys are read as they were written, and other texts are refused without a panic.
func FuzzKeys(f *testing.F) {
	for _, seed := range []string{"", "0", "1/0x0000000000000000000000000000000000000001/1", "5-7", "1-2-3", "-1",
		"99999999999999999999-1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, key string) {
		for _, check := range []func(string, string) error{exportdb.Agents().CheckKey, exportdb.Ratings().CheckKey,
			exportdb.Events().CheckKey, exportdb.Scores().CheckKey, exportdb.Changes().CheckKey} {
			if err := check("after", key); err != nil && !errors.Is(err, repute.ErrInvalid) {
				t.Errorf("%q: %v", key, err)
			}
		}
	})
}
