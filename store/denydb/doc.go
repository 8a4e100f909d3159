// Package denydb keeps the operator's deny-list and applies it to what is stored.
package denydb
