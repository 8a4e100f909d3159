// Package settlement settles x402 payments with the wallet: it is the facilitator of this process.
//
// The transaction of a payment is an intent of the wallet, whose id is made of the payer's
// authorization: chain, token, payer and nonce. So it is stored before it is sent, sent once by
// any number of processes, followed after a crash, and a payment that is settled again gets the
// stored end.
package settlement
