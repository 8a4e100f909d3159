// Package harness has what all benchmarks share: a private Postgres, processes of the product, and reports.
package harness
