// Package bench measures the product as its users run it: another process of the same program, a real Postgres, a
// node that answers over HTTP. A measurement ends in a harness.Report, whose Targets say whether it was good enough.
package bench
