// Package rows keeps the agents and ratings of a chain in memory as of one block, the last one of an epoch.
//
// A Store is filled by one pass over the tables and takes 24 bytes a rating: addresses, values and tags are numbered,
// and only their numbers are in the rows. For the next epoch it reads again only the agents with an event since, and of
// most of them only the later ratings; revoked ones it removes. When it cannot tell what changed, because events were
// found late or the counts of ratings differ, it reads everything again.
//
// Graph builds the graph of who trusts whom from a Store, and Evidence returns what is known of one agent. What is rare
// is not in a Store: payments, and the answers of validation contracts about single agents. Engines read these agents
// from the database.
//
// The memory of a Store is divided in three. Agents are one list in order of their token ids, so that a lookup is a
// binary search without a map. Ratings are one array of all agents, of which each agent has a part; only agents that
// changed since have an array of their own. What many ratings have in common (addresses, values, tags, and their
// combinations, the kinds) is in numbers, which only grow: a number never changes its meaning while a Store lives, or
// until it reads everything again.
//
// A pass over the tables runs in one read-only transaction, so that agents, ratings, operators and answers are of one
// state of the database. A pass that fails leaves an empty Store, and the next one reads everything. Nothing is written
// to the database.
package rows
