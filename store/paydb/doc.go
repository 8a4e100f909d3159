// Package paydb stores the payments that feedback files claim, and what the chain says of them.
//
// MatchPayments and ScanPayments join files that claim payments with the ratings that name
// them; each match is a row of payments. The payments loop takes rows with DuePayments, looks
// the transaction up, and stores the result with SettlePayment. One transfer counts for one
// rating, the earliest one. ReadRelated returns the addresses that may pay or be paid for
// client and agent, by which a payment to oneself is recognized.
//
// Each change of the amount that counts for a rating is an entry in the ledger, so that a score
// can be replayed with the amounts that were known then. Entries are written one transaction after the other, so that
// nobody sees a later one without an earlier one; the entry, the change of the feed and the mark for the trust engine
// commit with the state of the payment.
//
// Claims of one transaction are settled one after the other, under a lock of the transaction. A claim that comes later
// and whose rating is earlier takes the transfer; the claim that had it is looked up again. ReopenPayments and
// ReopenRatings do the same where a block's time or a rating's payer was corrected, in the transaction that corrects
// it.
//
// Nothing here holds a claim of a row: two processes may look up the same payment, and the one that settles it second
// stores the same outcome. A lookup by a process that died is made again when it is due.
//
// Tables: payments, payment_ledger.
package paydb
