// Package walletdb stores the transactions that this service means to send or has sent, the
// actions that its operator asked for, and the treasuries that pay.
//
// An intent is one transaction. AddIntent stores it with its first signed form before anything
// is sent, under a lock of the account, so that each nonce is used once. AddAttempt adds forms
// with a higher fee, and MarkIntent stores how far the transaction is. After a crash the same
// intent is found again by its id, and sent again as it was signed.
//
// An operator action is outside any run. It is a row of table acts, type Act, and its transactions are intents. Events
// of treasuries are indexed with their chain: chaindb.WatchTreasury adds a treasury, eventdb stores its events, and
// this package reads them.
//
// A Purchase is also a row of acts, and pays for an answer by x402. The payee sends its transaction, so it has no
// intent: it counts against the caps from its signature on.
//
// A call of a run or an operator action ends without an effect only while no intent of it is signed. AddIntent locks
// the call or the action, and refuses one that has ended; FailAct and package rundb ask WithoutEffect under the same
// lock.
//
// Each function is one transaction, which commits before it returns. Functions that sign hold the lock of the account
// while their callback asks the signer, for at most 45 seconds.
//
// Tables: intents, intent_attempts, acts; it reads treasury_events.
package walletdb
