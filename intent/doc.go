// Package intent finds which of many offers fits a text: intents of agent.json, skills of agents,
// tools of MCP servers, classes of OASF.
//
// An Index compares the text with each item twice. An Embedder turns both into vectors whose
// dot product says how close their meanings are, so that "get me a plane ticket" finds
// "book_flight". BM25 adds a little for rare words that both have. The default Embedder is in
// package sentence and needs no service; package openai asks a server.
//
// A Result says whether its first match is sure. Scores of right and wrong matches overlap, so a
// match that is not sure MUST NOT be executed without asking, and one that costs money never.
//
// The vectors of an item depend only on its texts and on the model. Vectors computes them, a Vector
// can be stored as bytes, and Put takes it back.
package intent
