// Package stats has the JSON shapes of what dashboards show: histories and series of agents, facets, reviewers,
// validators, tags and leaderboards, with their conversion from the types of the store. REST and, by their field names,
// GraphQL answer with them. It reads no database. As in package wire, texts of the chain are hostile: they are mended
// and cut.
package stats
