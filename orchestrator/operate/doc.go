// Package operate carries out operator actions, which are transactions outside any run: reading and
// setting treasury policies, treasury calls and transfers, identities, agent wallets, feedback.
// Each action is simulated, decided by the policy, stored, and then sent exactly once. Run
// completes actions that were interrupted, for example by a crash.
package operate
