// Package stats has the JSON shapes of what dashboards show: histories and series of agents, facets, reviewers,
// validators, tags and leaderboards, with their conversion from the types of the store. REST and, by their field names,
// GraphQL answer with them. It reads no database. As in package wire, texts of the chain are hostile: they are mended
// and cut.
//
// A share is from 0 to 1 with six digits, and null of nothing. A value that carries on from an earlier bucket or is not
// known is marked or null and never 0, so that a chart shows no fall that did not happen.
package stats
