// Package migrations holds the schema as numbered SQL files, up and down, in
// goose's format.
//
// Package store applies them (store.Migrate) and refuses a database with a number that is not among them. Until the
// first release there is one file, which is edited in place. Comments on tables and columns are part of the schema:
// docs/reference/schema.md is made from them, and a test fails for a table without one.
package migrations

import "embed"

// FS holds the files, ready for goose.
//
//go:embed *.sql
var FS embed.FS
