// Package subgraphdb reads the index in the shape of the agent0 subgraph: the entities, fields and ids that SDKs and
// dashboards of agent0 ask graph-node for.
//
// Entities returns the one table of them. Package api/subgraph makes its GraphQL schema, filters and orders from it, and
// describes what to read as a Query; Snapshot.Read turns a Query into one statement. The text of a statement consists of
// the expressions of that table alone, and every value of a caller is a parameter.
//
// It only reads; the tables belong to other packages.
package subgraphdb
