// Package migrations holds the schema as numbered SQL files, up and down, in
// goose's format.
package migrations

import "embed"

// FS holds the files, ready for goose.
//
//go:embed *.sql
var FS embed.FS
