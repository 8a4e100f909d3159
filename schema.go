package repute

import _ "embed" // for the schema and the report

// Schema is the native GraphQL contract, schema.graphql, that package api
// serves at /graphql.
//
//go:embed schema.graphql
var Schema string

// AttackReport is the report of the last measurement of attacks on scores, as JSON. It is a fact of the release: the
// parameters that it names are those that were measured.
//
//go:embed docs/bench/trust.json
var AttackReport []byte
