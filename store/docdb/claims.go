package docdb

import (
	"context"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store/column"
)

// saveClaims stores the payments that the files of the batch claim.
func (s saving) saveClaims(ctx context.Context, tx pgx.Tx) error {
	b := &pgx.Batch{}
	for _, r := range s.results {
		if r.sum != nil && !r.denied {
			queueClaim(b, []int64{r.URIID}, r.Files)
		}
	}
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}

// saveClaims stores the payment that a document claims, for each of the URIs that serve it.
func saveClaims(ctx context.Context, tx pgx.Tx, uris []int64, files []FileParse) error {
	b := &pgx.Batch{}
	queueClaim(b, uris, files)
	if b.Len() == 0 {
		return nil
	}
	return tx.SendBatch(ctx, b).Close()
}

// queueClaim stores the first payment that the files claim. Members that cannot be read are stored
// as null.
func queueClaim(b *pgx.Batch, uris []int64, files []FileParse) {
	i := slices.IndexFunc(files, func(f FileParse) bool { return f.Feedback != nil && f.Feedback.Payment != nil })
	if i < 0 {
		return
	}
	f := files[i].Feedback
	var token *column.TokenNum
	if f.TokenID != nil {
		token = (*column.TokenNum)(f.TokenID)
	}
	payer, payee := claimedAddress(f.Payment.From), claimedAddress(f.Payment.To)
	b.Queue(`
		insert into payment_files as p (uri_id, chain_id, token_id, client, payer, payee, pay_chain, tx)
		select u, $2, $3, $4, $5, $6, $7, $8 from unnest($1::bigint[]) u order by u
		on conflict (uri_id) do update set chain_id = excluded.chain_id, token_id = excluded.token_id, client =
			excluded.client,
			payer = excluded.payer, payee = excluded.payee, pay_chain = excluded.pay_chain, tx = excluded.tx, unseen = true
		where (p.chain_id, p.token_id, p.client, p.payer, p.payee, p.pay_chain, p.tx) is distinct from
			(excluded.chain_id, excluded.token_id, excluded.client, excluded.payer, excluded.payee, excluded.pay_chain, excluded.tx)`,
		uris, chainOfAccount(f.Registry), token, claimedAddress(f.Client), payer, payee,
		claimedChain(f.Payment.ChainID),
		claimedHash(f.Payment.TxHash))
}

// claimedAddress parses an address, or the address of an account in CAIP-10 form; nil when it is
// neither.
func claimedAddress(text string) []byte {
	text = strings.TrimSpace(text)
	if i := strings.LastIndexByte(text, ':'); i >= 0 {
		text = text[i+1:]
	}
	raw, err := hexutil.Decode(strings.ToLower(text))
	if err != nil || len(raw) != common.AddressLength {
		return nil
	}
	return raw
}

// claimedHash parses a transaction hash; nil when it is none.
func claimedHash(text string) []byte {
	raw, err := hexutil.Decode(strings.ToLower(strings.TrimSpace(text)))
	if err != nil || len(raw) != common.HashLength {
		return nil
	}
	return raw
}

// claimedChain parses a chain id, decimal or as eip155:{chain}; nil when it is neither.
func claimedChain(text string) *int64 {
	id, err := repute.ParseChainID(strings.TrimPrefix(strings.TrimSpace(text), "eip155:"))
	if err != nil {
		return nil
	}
	n := int64(id)
	return &n
}

// chainOfAccount returns the chain of an account in CAIP-10 form; nil when it is none.
func chainOfAccount(text string) *int64 {
	account, err := repute.ParseAccount(strings.ToLower(text))
	if err != nil {
		return nil
	}
	n := int64(account.ChainID)
	return &n
}
