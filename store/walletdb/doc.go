// Package walletdb keeps transactions that this service means to send or has sent: intents with
// their nonces and attempts, the operator's actions, and the treasuries that pay.
package walletdb
