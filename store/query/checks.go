package query

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jackc/pgx/v5"

	"repute"
	"repute/store"
	"repute/store/chaindb"
	"repute/store/column"
)

// TrustChecks is the input of identity checks of an agent, as of one block. Files are the newest
// ones read from the URIs of that block.
type TrustChecks struct {
	// Agent is the agent at the requested block.
	Agent repute.Agent
	AsOf  repute.AsOf
	// ParserVersion is the version of the parser that read the agent's document, 0 when it was not
	// read.
	ParserVersion int
	// File is the first of the requested files that was read, otherwise the first one that is
	// known; nil when none is known.
	File *CheckedFile
	// Validating says that the chain has validation contracts on the allow-list.
	Validating bool
	// Answer is the newest one of these contracts, nil when there is none.
	Answer *TrustAnswer
}

// CheckedFile is a file of an agent other than its registration.
type CheckedFile struct {
	URI  string
	File repute.File
	Body []byte // nil where no bytes are kept
}

// TrustAnswer is the answer of a validator.
type TrustAnswer struct {
	Contract, Validator common.Address
	Request             common.Hash
	Response            uint8 // 0 to 100
	Block               uint64
}

// maxChecked is how many files of an agent are considered. The URIs come from a document that anybody may write.
const maxChecked = 16

// ReadTrustChecks reads the input of identity checks. files returns the URIs of an agent's other
// files, of which maxChecked are considered. Errors are those of Agent. files is called within the transaction and MUST
// NOT use the database.
func ReadTrustChecks(ctx context.Context, db *store.DB, id repute.AgentID, at repute.At,
	files func(repute.Agent) []string) (out TrustChecks, err error) {
	err = chaindb.ViewAgent(ctx, db, "read checks", id, at, func(ctx context.Context, s chaindb.Subject) error {
		out = TrustChecks{AsOf: s.AsOf, Validating: len(s.Chain.Validations) > 0}
		if out.Agent, err = readAgent(ctx, s); err != nil {
			return err
		}
		if sum := out.Agent.Document.SHA256; sum != [32]byte{} {
			err := s.Tx.QueryRow(ctx,
				"select coalesce(max(parser_version), 0) from parses where sha256 = $1 and kind = 'registration'",
				sum[:]).Scan(&out.ParserVersion)
			if err != nil {
				return fmt.Errorf("parser: %w", err)
			}
		}
		if out.File, err = firstFile(ctx, s, files(out.Agent)); err != nil {
			return err
		}
		out.Answer, err = newestAnswer(ctx, s)
		return err
	})
	return out, err
}

// firstFile returns the first of the URIs' files that was read, nil when there is none. A file that is known and was
// not read yet tells that an answer may come.
func firstFile(ctx context.Context, s chaindb.Subject, uris []string) (*CheckedFile, error) {
	hashes := make([][]byte, 0, maxChecked)
	for _, u := range uris[:min(len(uris), maxChecked)] {
		h := column.SHA256(u)
		hashes = append(hashes, h[:])
	}
	if len(hashes) == 0 {
		return nil, nil
	}
	var uri, body []byte
	var row fileRow
	err := s.Tx.QueryRow(ctx, `
		select u.uri, u_d.body, `+fileColumns("u")+`
		from unnest($1::bytea[]) with ordinality as k(hash, n)
		join uris u on u.hash = k.hash`+joinFile("u")+`
		where u.kind <> 'empty' and (u.sha256 is not null or u.tried_at is not null or u.next_due is not null)
		order by u.sha256 is null, k.n limit 1`, hashes).Scan(append([]any{&uri, &body}, row.into()...)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("files: %w", err)
	}
	file, err := row.file(common.Hash{})
	if err != nil || file == nil {
		return nil, err
	}
	if file.Status == repute.DocumentDenied {
		body = nil
	}
	return &CheckedFile{URI: string(uri), File: *file, Body: body}, nil
}

// newestAnswer returns the newest answer to a validation of the agent, nil when there is none.
func newestAnswer(ctx context.Context, s chaindb.Subject) (*TrustAnswer, error) {
	var a TrustAnswer
	err := s.Tx.QueryRow(ctx, `
		select q.contract, q.validator, q.request_hash, x.response, x.block
		from validation_requests q
		join validation_responses x on (x.chain_id, x.contract, x.request_hash) = (q.chain_id, q.contract, q.request_hash)
			and x.block <= $3
		where q.chain_id = $1 and q.token_id = $2 and q.block <= $3 and q.contract = any($4)
		order by x.block desc, x.log_index desc limit 1`, append(s.Key(), column.AddressColumn(s.Chain.Validations))...).
		Scan((*column.Address)(&a.Contract), (*column.Address)(&a.Validator), (*column.Hash)(&a.Request), &a.Response,
			&a.Block)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	return &a, nil
}
