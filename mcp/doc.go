// Package mcp offers tools to agents over the Model Context Protocol, on HTTP and on
// standard input and output. It knows nothing of what a tool does: packages that answer
// questions add their tools to a Server. What is the same for every tool is here: the
// schema of what it takes and gives, strict reading, bounds, and how an error is told.
package mcp
