package query

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/column"
	"repute/store/docdb"
	"repute/store/docjson"
)

// maxListedFile is how many bytes of a rating's parsed file an answer holds. Other files are
// described only, because anybody may put responses with files behind ratings, and a page holds
// thousands of them.
const maxListedFile = 4 << 10

// fileColumns returns the columns that a fileRow receives of the file of URI u, a row of uris or
// nulls. Such a file may be anything, so only its bytes are described.
func fileColumns(u string) string {
	return heldColumns(u) + `, false, null::jsonb, null::jsonb, null::bigint, null::integer`
}

// ratingColumns is fileColumns for a rating's file, which should be a feedback file. Unknown
// members stay in the database.
func ratingColumns(u string) string {
	return heldColumns(u) +
		fmt.Sprintf(`, true, %[1]s_p.content, %[1]s_p.problems, %[1]s_p.problem_count, %[1]s_p.errors`, u)
}

// heldColumns returns the columns that describe the bytes.
func heldColumns(u string) string {
	return fmt.Sprintf(`%[1]s.kind <> 'empty', %[1]s.source, %[1]s.sha256, %[1]s_d.keccak, %[1]s_d.size, %[1]s.fetched_at,
		%[1]s.reason, %[1]s.detail, %[1]s.dead, `+docdb.DeniedFile(u)+`, %[1]s_d.size is not null and %[1]s_d.body is null`, u)
}

// joinFile returns the join that fileColumns needs.
func joinFile(u string) string {
	return fmt.Sprintf(`
	left join documents %[1]s_d on %[1]s_d.sha256 = %[1]s.sha256`, u)
}

// joinRating returns the join that ratingColumns needs.
func joinRating(u string) string {
	return joinFile(u) + fmt.Sprintf(`
	left join lateral (
		select case when jsonb_typeof(content) = 'object' and octet_length(content::text) <= %[2]d then content - 'Extra'
			end as content,
			jsonb_path_query_array(problems, '$[0 to 9]') as problems, jsonb_array_length(problems) as problem_count, errors
		from parses where sha256 = %[1]s.sha256 and kind = 'feedback' order by parser_version desc limit 1) %[1]s_p on
			true`, u, maxListedFile)
}

// fileRow receives the state of a file. Pointers are nil where the URI is no row of uris.
type fileRow struct {
	named                  *bool
	source, reason, detail *string
	sha256                 []byte // nil where nothing was read
	keccak                 column.Hash
	size                   *int64
	fetched                column.Time
	dead                   *bool
	denied                 *string
	dropped                bool
	feedback               bool // it is to be a feedback file
	content, problems      []byte
	problemCount           *int64
	errors                 *int
}

// into returns where to scan the columns.
func (f *fileRow) into() []any {
	return []any{&f.named, &f.source, &f.sha256, &f.keccak, &f.size, &f.fetched, &f.reason, &f.detail, &f.dead,
		&f.denied, &f.dropped,
		&f.feedback, &f.content, &f.problems, &f.problemCount, &f.errors}
}

// file returns the file as the API shows it; nil where the URI is empty and no hash was given. The hash that was given
// on the chain is compared even where nothing was read, so that callers see whether there is a proof.
func (f *fileRow) file(given common.Hash) (*repute.File, error) {
	if f.named == nil || !*f.named {
		if given == (common.Hash{}) {
			return nil, nil
		}
		return &repute.File{Status: repute.DocumentNone, Proof: repute.JudgeHash(given, common.Hash{}, "")}, nil
	}
	if f.denied != nil {
		return &repute.File{Status: repute.DocumentDenied, Reason: docdb.ReasonDenied, Detail: *f.denied,
			Proof: repute.JudgeHash(given, common.Hash{}, "")}, nil
	}
	out := &repute.File{Status: f.status(), Source: *f.source, Keccak: common.Hash(f.keccak),
		FetchedAt: time.Time(f.fetched), Reason: *f.reason, Detail: *f.detail, Dropped: f.dropped}
	copy(out.SHA256[:], f.sha256)
	if f.size != nil {
		out.Size = *f.size
	}
	out.Proof = repute.JudgeHash(given, out.Keccak, out.Source)
	return out, f.parsed(out)
}

// status returns the status that the API shows. The first case that holds counts.
func (f *fileRow) status() repute.DocumentStatus {
	switch {
	// nor did anything in it look like one
	case f.errors != nil && *f.errors > 0, f.feedback && f.sha256 != nil && f.errors == nil:
		return repute.DocumentInvalid
	case f.sha256 != nil:
		return repute.DocumentOK
	case *f.dead:
		return repute.DocumentDead
	case *f.reason != "":
		return repute.DocumentFailed
	}
	return repute.DocumentPending
}

// parsed sets content and problems of a parsed feedback file.
func (f *fileRow) parsed(out *repute.File) (err error) {
	if f.errors == nil {
		return nil
	}
	out.ProblemCount = *f.problemCount
	if err := json.Unmarshal(f.problems, &out.Problems); err != nil {
		return fmt.Errorf("stored problems: %w", err)
	}
	if f.content == nil {
		return nil
	}
	if out.Feedback, err = docjson.DecodeFeedback(f.content); err != nil {
		return fmt.Errorf("stored feedback file: %w", err)
	}
	return nil
}
