// Package operate holds the acts of the operator itself on a chain, outside any run:
// reading and setting treasury policies, treasury calls and transfers, identities, agent
// wallets, feedback. Each is simulated first, decided by the policy, recorded before
// anything is sent, and sent once. What began is brought to its end by Run, also after a
// crash.
package operate
