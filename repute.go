// Package repute is the vocabulary of the ERC-8004 index: identifiers, events,
// agents, feedback, documents and the arithmetic of summaries. It does no I/O.
package repute
