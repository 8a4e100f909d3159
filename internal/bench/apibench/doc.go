// Package apibench measures how fast the API answers over a full index: the product in a process of its own, beside a
// bare handler that returns a constant, on a private Postgres.
package apibench
