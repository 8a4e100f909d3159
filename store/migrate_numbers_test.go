package store_test

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"repute/migrations"
)

// Two migrations of one number would be one or the other, as the case may be; one that
// cannot be taken back ends a way down.
func TestMigrationNumbers(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(migrations.FS, "*.sql")
	ok(t, err)
	form := regexp.MustCompile(`^(\d{5})_[a-z_]+\.sql$`)
	of := map[string]string{}
	for _, name := range names {
		m := form.FindStringSubmatch(name)
		if m == nil {
			t.Errorf("%s: not 00000_words.sql", name)
			continue
		}
		if of[m[1]] != "" {
			t.Errorf("%s and %s have one number", of[m[1]], name)
		}
		of[m[1]] = name
		body, err := fs.ReadFile(migrations.FS, name)
		ok(t, err)
		up, down := strings.Index(string(body), "-- +goose Up"), strings.Index(string(body), "-- +goose Down")
		if up < 0 || down < up {
			t.Errorf("%s: no way up, or none down", name)
		}
	}
	if len(of) == 0 {
		t.Error("no migrations")
	}
}
