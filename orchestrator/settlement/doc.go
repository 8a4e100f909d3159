// Package settlement settles x402 payments with the wallet: it is the facilitator of this process.
//
// The transaction of a payment is an intent of the wallet, whose id is made of the payer's authorization: chain,
// token, payer and nonce. So it is stored before it is sent, sent once by any number of processes, followed after a
// crash, and a payment that is settled again gets the stored end.
//
// New returns an x402.Local, which has the protocol: what is verified, and in which order. What it needs of this
// process is here. Chain reads contracts at a block on which the wallet's endpoints agree. The settler tells the
// stored Outcome of a transfer and Sends its transaction, both until Options.Wait has passed; then the error is
// x402.ErrUnknownEnd: the caller settles the same payment again, and MUST NOT take it for refused. Whether a mined
// transaction paid is read from the token's logs, since a token may do something else than it was told.
package settlement
