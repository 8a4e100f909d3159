// Package bulk has the commands that work on many rows or callers: the download of whole sets from a server, their
// loading into ClickHouse, and API keys.
package bulk
