// Package payments has the commands that pay and settle by x402.
package payments
