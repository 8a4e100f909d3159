// Package subgraphdb reads the index in the shape of the agent0 subgraph: the entities, fields and ids that SDKs and
// dashboards of agent0 ask graph-node for. It only reads; the tables belong to other packages.
//
// # The table of entities
//
// Entities returns the one table of them: for each entity its tables, for each field its type and the SQL of its value.
// Package api/subgraph makes its GraphQL schema, filters and orders from it, and describes what to read as a Query;
// Snapshot.Read turns a Query into one statement. The text of a statement consists of the expressions of that table
// alone, and every value of a caller is a parameter.
//
// # Ids
//
// An id is a text such as "8453:17" that no column holds. Key says what it consists of: filters that compare ids for
// equality compare the columns instead, and ids are written from the columns when rows are read.
//
// Lists are ordered by id unless a query says otherwise, and clients read all of a list with the filter id_gt. Ids
// ascend as texts do, 8453:10 before 8453:9, which is the order of no index. Token ids of equally many digits ascend as
// texts and as numbers, so walk reads the first rows of each number of digits from an index of numbers and merges them,
// and id_gt becomes a range of numbers for each. The orders that SDKs send and their indexes:
//
//	id, chainId             the primary keys, by number of digits
//	createdAt               agents_registered, feedback_block
//	updatedAt               agents_updated
//	lastActivity            agents_updated, as a bound: no agent is active after its last change
//	createdAt of one agent  feedback_newest
//	totalFeedback, name     none: all rows are sorted
//
// Times are ordered by the numbers of their blocks, which ascend with them. A page in the order of a block begins at
// the place where the page before it ended (places.go), so that a walk by skip does not skip the same rows again and
// again.
//
// # Series
//
// Points are computed from the events when they are asked for, sums by hour and day from the hours that package hourdb
// stores: see series.go and sums.go.
package subgraphdb
