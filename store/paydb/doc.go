// Package paydb stores the payments that feedback files claim, and what the chain says of them.
//
// MatchPayments and ScanPayments join files that claim payments with the ratings that name
// them; each match is a row of payments. The payments loop takes rows with DuePayments, looks
// the transaction up, and stores the result with SettlePayment. One transfer counts for one
// rating, the earliest one. ReadRelated returns the addresses that may pay or be paid for
// client and agent, by which a payment to oneself is recognized.
//
// Each change of the amount that counts for a rating is an entry in the ledger, so that a score
// can be replayed with the amounts that were known then.
//
// Tables: payments, payment_ledger.
package paydb
