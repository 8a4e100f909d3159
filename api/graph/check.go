package graph

import (
	"context"
	"encoding/hex"

	"repute"
	"repute/api/wire"
	"repute/manifest/judge"
)

// Fetcher reads files of strangers, so that nothing but public hosts is reached.
type Fetcher interface {
	// Fetch returns the bytes behind a URI. repute.ErrInvalid says why there are none; it is repute.ErrNotFound too
	// where their host has none.
	Fetch(ctx context.Context, uri string) ([]byte, error)
}

// checkCost is what the check of a file costs, besides a read.
const checkCost = 1000

// checkedFile is a file with its problems.
type checkedFile struct {
	Kind                    string
	Name                    *string
	Size                    wire.Long
	SHA256                  wire.Hash
	Errors, Warnings, Infos wire.Long
	Problems                []fileProblem
	Lines                   []fileLine
}

// fileProblem is what is wrong with a file.
type fileProblem struct {
	Code, Severity, Path, Message string
	Hint                          *string
	Line, Column                  *wire.Long
}

// fileLine is a line of a file.
type fileLine struct {
	Number wire.Long
	Text   string
	Cut    bool
}

// CheckFile judges a file that the caller gives, or one that is read from a URL.
func (q *queryResolver) CheckFile(ctx context.Context, args struct {
	Kind    *string
	Content *string
	URL     *string
}) (*checkedFile, error) {
	if (args.Content == nil) == (args.URL == nil) {
		return nil, repute.Invalid("content", "neither or both of content and url are given", "one of them")
	}
	if err := charge(ctx, checkCost); err != nil {
		return nil, err
	}
	b := []byte(orEmpty(args.Content))
	if args.URL != nil {
		var err error
		if b, err = q.fetch(ctx, *args.URL); err != nil {
			return nil, err
		}
	}
	kind := judge.Auto
	if args.Kind != nil {
		kind = judge.Kind(*args.Kind)
	}
	r, err := judge.File(b, kind)
	if err != nil {
		return nil, err
	}
	return encodeChecked(&r), nil
}

// fetch reads a file for a caller, within the limit of the reads that a caller may cause.
func (q *queryResolver) fetch(ctx context.Context, uri string) ([]byte, error) {
	if q.options.Files == nil {
		return nil, &repute.MissingError{What: "reading of URLs", Why: "is not configured here",
			Hint: "give the content of the file"}
	}
	if err := q.index.PermitFetch(ctx); err != nil {
		return nil, err
	}
	return q.options.Files.Fetch(ctx, uri)
}

// encodeChecked writes a report.
func encodeChecked(r *judge.Report) *checkedFile {
	out := &checkedFile{Kind: string(r.Kind), Name: wire.OrNull(r.Name), Size: wire.Long(r.Size),
		SHA256: wire.Hash("0x" + hex.EncodeToString(r.SHA256[:])), Errors: wire.Long(r.Errors),
		Warnings: wire.Long(r.Warnings),
		Infos:    wire.Long(r.Infos)}
	out.Problems = wire.Each(r.Problems, func(p judge.Problem) fileProblem {
		return fileProblem{Code: p.Code, Severity: string(p.Severity), Path: p.Path, Message: p.Message,
			Hint: wire.OrNull(p.Hint),
			Line: wire.OrNull(wire.Long(p.Line)), Column: wire.OrNull(wire.Long(p.Column))}
	})
	out.Lines = wire.Each(r.Lines, func(l judge.Line) fileLine { return fileLine{wire.Long(l.Number), l.Text, l.Cut} })
	return out
}
