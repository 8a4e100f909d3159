// Package httpapi is what the HTTP handlers of this service have in common, so that they
// answer alike: problems, request ids, who the caller is, limits per caller, how a query is
// checked and how OpenAPI documents are written.
package httpapi
