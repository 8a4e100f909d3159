package chaindb

import (
	"fmt"
	"regexp"
	"testing"

	"repute"
	"repute/migrations"
)

// A partial index serves only statements that repeat its condition.
func TestConditionsAreThoseOfTheIndexes(t *testing.T) {
	t.Parallel()
	schema, err := migrations.FS.ReadFile("00001_schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	for index, want := range map[string]string{
		"pending_waiting": Waiting, "events_upgrades": fmt.Sprintf("kind = %d", repute.KindUpgraded),
	} {
		found := regexp.MustCompile(`create index ` + index + ` on [^;]*\bwhere ([^;]*);`).FindSubmatch(schema)
		if found == nil {
			t.Errorf("there is no partial index %s", index)
		} else if got := string(found[1]); got != want {
			t.Errorf("index %s has rows where %s, and statements ask where %s", index, got, want)
		}
	}
}
