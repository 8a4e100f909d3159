// Package searchtext turns documents, and the texts that callers search for, into the words,
// hosts and places that are compared.
//
// Both sides go through the same functions, so they agree: Folded removes accents and case,
// AsWords splits a text into words in American spelling and, for scripts without spaces, into
// pairs of characters, and PlaceOf recognizes hosts, URLs and addresses.
//
// A place is where an agent can be reached: a host with or without port, a URL without its scheme, or an address. A
// document has the hosts of its endpoints and the domains above them, so that a domain finds its subdomains.
//
// SearchableOf makes the search row of a parsed document, which package docdb stores with
// UpsertSearchable. When its content changes, SearchForm must be raised.
//
// The author of a document chooses how long it is, and how often it names a word. So every text and list is bounded in
// bytes, values come once, and only the head of a description can be found by parts of words. The package reads no
// table.
package searchtext
