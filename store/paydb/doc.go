// Package paydb judges the payments that feedback files claim, against the transfers that the
// chain has.
package paydb
