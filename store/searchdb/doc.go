// Package searchdb finds agents: by filters on the chain and on documents and by text, in pages
// of several orders, and counts them by what they offer.
//
// AgentFilter becomes an agentQuery, the conditions as SQL, with an agentOrder. Agents without a text reads every chain
// by the index of its order and merges the chains (order.go). With
// a text it tries ways to match in turn (all words, most words, similar names) until one finds
// an agent, and orders the matches by class, then by ratings (match.go). Near-identical agents of one
// owner are listed once. SearchFacets counts the same matches by their services, skills and other lists.
//
// A search must not slow others down: statements of a page take at most Timeouts.Search together (a minute by default;
// the API sets three seconds with SetTimeouts), a limited number of searches runs at once, at most maxHits documents
// are ordered, and totals are counted to maxCounted. Answers say where they are cut. A search that takes too long fails
// with context.DeadlineExceeded, although the caller's context goes on.
//
// Postgres chooses its plan by how many rows it expects, and knows nothing of expressions. Conditions on documents are
// therefore plain columns where an index should be followed (hasStatus), and the text finds documents first, bounded,
// before agents are joined.
//
// It reads table searchable, which packages docdb and searchtext fill (FillSearch completes it after an upgrade), and
// tables of agents and scores.
package searchdb
