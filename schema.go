package repute

import _ "embed" // for the schema

// Schema is the native GraphQL contract, schema.graphql, that package api
// serves at /graphql.
//
//go:embed schema.graphql
var Schema string
