// Package searchdb finds agents: by filters on the chain and on documents, by text, in pages of
// several orders, and counts them by what they offer. What takes too long is cut, and said to be.
package searchdb
