// Package httpapi is the HTTP server that every package adds its routes to. A Server has one router, one OpenAPI
// document, one set of tokens and one chain of middleware, in this order: request id, access log and metrics, panics,
// headers for browsers, CORS, unknown methods, rate per caller or API key, token, role, body, deadline, compression,
// answers kept in Redis. Each only sees requests that those before it let pass, so that an unknown caller costs no more
// than a count.
//
// # Routes
//
// A typed operation is registered with Server.API and documents itself. Other routes are added with Get, Post and
// Stream, which take their documentation, or with Describe and the router itself. Handler writes the document, which is
// why it MUST be called after all routes were added, and only once.
//
// Unknown, repeated and empty query parameters are refused, because a misspelled one would answer another question. The
// values are checked by the documented schemas, so that the document and the behavior cannot differ.
//
// # Callers
//
// A caller is its address (an IPv6 network is one), or the API key that it sends; CallerOf names it, and Limiter counts
// it, in Redis where one is configured, so that processes count together, and in this process while Redis is
// unavailable. Rights come from tokens alone: Protect says which roles a route takes, and Allowed asks for more within
// a handler. An API key raises a limit and gives no right.
//
// Guard stands in front of it all against pages that make a browser send requests.
//
// # Errors
//
// Errors become RFC 9457 problems in one table (ErrorOf), which names the kinds of errors of the root package. An error
// of no known kind is logged and becomes a 500 with no internal details. Handlers return errors and do not log them.
//
// # Lifetimes
//
// Every request has a deadline but those of routes that Stream or Streams marked; their writes have deadlines of their
// own (EventStream), and StreamLimit bounds how many there are.
package httpapi
