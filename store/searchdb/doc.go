// Package searchdb finds agents: by filters on the chain and on documents and by text, in pages
// of several orders, and counts them by what they offer.
//
// Agents without a text reads every chain by the index of its order and merges the chains. With
// a text it tries ways to match in turn (all words, most words, similar names) until one finds
// an agent, and orders the matches by class, then by ratings. Near-identical agents of one
// owner are listed once.
//
// A search must not slow others down: statements of a page take at most three seconds together,
// a limited number of searches runs at once, at most maxHits documents are ordered, and totals
// are counted to maxCounted. Answers say where they are cut.
//
// It reads table searchable, which package searchtext fills, and tables of agents and scores.
package searchdb
