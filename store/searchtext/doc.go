// Package searchtext turns documents, and the texts that callers search for, into the words,
// hosts and places that are compared.
//
// Both sides go through the same functions, so they agree: Folded removes accents and case,
// AsWords splits a text into words in American spelling and, for scripts without spaces, into
// pairs of characters, and PlaceOf recognizes hosts, URLs and addresses.
//
// SearchableOf makes the search row of a parsed document, which package docdb stores with
// UpsertSearchable. When its content changes, SearchForm must be raised.
package searchtext
