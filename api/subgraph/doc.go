// Package subgraph serves the GraphQL API of the agent0 subgraph, one endpoint for each chain, so that SDKs and dashboards
// of agent0 work on this index by a change of their URL.
//
// The types, filters, orders and query fields follow mechanically from the table of entities in package subgraphdb, as
// graph-node makes them from a subgraph's schema. A query is parsed, turned into a tree of selections (package ast is
// gqlparser's), and read level by level with one statement each. Nothing is validated beyond what graph-node validates,
// because SDKs rely on its leniency and on the words of its errors.
package subgraph
