// Package payer pays for answers of HTTP servers by x402, if the party that is paid is trusted.
//
// A server that demands payment names an account. The payer finds the agent behind it in the index, over the
// index's HTTP API as any runtime would, by the account's agents or the proven domain of the server. It refuses an
// agent whose score is below the threshold, and an account that belongs to no agent it can name. Without an answer
// of the index nothing is paid. Of several ways to pay the cheapest is taken for which there are a listed coin and
// a key.
//
// What is paid is bounded per call, per task, per host and per day. The caps of hosts and days count what was
// signed in the last 24 hours by all processes of a database, since AddPurchase looks and stores in one
// transaction. A host is one host however its URL is written.
//
// Each purchase is stored before its payment is sent. A request whose answer is lost is repeated with the same
// payment, by this process or a later one, and outbound.ErrPaymentOpen tells that the end is not known: it is not
// paid twice. In a run the call names the purchase, so that there is at most one payment of a call at any time.
//
// A Payer has the caps of one buyer, as of the command line. Runs pays for agents of the orchestrator, each time by
// the spending of the policy that decides about the run, and lets its rules judge the payment. Quote asks what an
// answer would cost and pays nothing.
package payer
