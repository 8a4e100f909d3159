// Package payments has the commands that pay, settle and rate by x402.
//
//   - `repute pay` asks a server and pays for its answer if the index says that the agent behind the demanded account is
//     trusted. [Buying] are the flags and the steps of that, which `repute intent run` shares; [Print] shows the answer
//     and what was paid.
//   - `repute pay list` shows the stored purchases, those of the orchestrator's agents too.
//   - `repute facilitator serve` verifies and settles payments for servers until it is interrupted.
//   - `repute feedback give` rates the agent that was paid, with the payment as proof.
//
// All of them need the database, because money is never moved by what only one process remembers: a purchase is stored
// before its request is sent, a settlement and a rating before their transactions are. A command that is repeated after
// a crash therefore continues the purchase, settlement or rating, and makes no second one. The rules are those of
// packages orchestrator/payer, orchestrator/settlement and orchestrator/wallet; the caps of a host and of a day count
// the purchases of every process on the database.
//
// Keys are those of orchestrator.wallets. They are opened for the time of a command, and never printed.
package payments
