// Package safety has the runtime's own rules about transactions, which no policy lifts: an agent
// does not change its own identity or trust records nor rate an agent of the same owner, and a
// payment to an agent goes to that agent's wallet.
package safety
