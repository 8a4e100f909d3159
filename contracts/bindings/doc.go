// Package bindings holds the generated Go bindings of the registries, of the
// bootstrap implementation and of the proxy, with their creation code. Calls
// are packed here; logs are decoded by package contracts.
package bindings
