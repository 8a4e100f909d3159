// Package httpapi is the HTTP server that every package adds its routes to. A Server has one router, one
// OpenAPI document, one set of tokens and one chain of middleware, in this order: request id, access log
// and metrics, panics, headers for browsers, CORS, unknown methods, rate per caller or API key, token, role, body,
// deadline, compression, answers kept in Redis. Errors become RFC 9457 problems in one table (ErrorOf). Guard stands in
// front of it all against pages that make a browser send requests.
package httpapi
