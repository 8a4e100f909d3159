// Package intent finds which of many offers fits a text: intents of agent.json, skills of agents,
// tools of MCP servers, classes of OASF.
//
// An Index compares the text with each item twice. An Embedder turns both into vectors whose
// dot product says how close their meanings are, so that "get me a plane ticket" finds
// "book_flight". BM25 adds a little for rare words that both have. The default Embedder is in
// package sentence and needs no service; package openai asks a server.
//
// A Result says whether its first match is sure. Scores of right and wrong matches overlap. A match that is not sure,
// or that costs money, MUST NOT be executed without asking the user.
//
// The vectors of an item depend only on its texts and on the model. Vectors computes them, a Vector
// can be stored as bytes, and Put takes it back. Vectors of another model are refused, because their dot
// products mean nothing.
//
// # What a caller may rely on
//
// Texts come from strangers. Any bytes are allowed, and only the head of each text is read, so that the author of an
// item decides neither how long a search takes nor how much memory the item has. An item has a vector of its name and
// description together, and one of each example; the closest counts.
//
// An Index is in memory alone, about 600 bytes for each vector of 512 dimensions. It compares a query with every item,
// which takes about as long as reading the vectors from memory: items need no tuning, and none is missed. It is safe
// for concurrent use; a search sees each item whole or not at all.
//
// The same items and the same query give the same matches in the same order on every processor: vectors are whole
// numbers, scores are rounded, and equal scores are ordered by id.
package intent
