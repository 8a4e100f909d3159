package service

import (
	"context"
	"errors"

	"repute"
	"repute/resolver"
)

// files reads files that callers of the API name, through the guard of documents.
type files struct{ client *resolver.Client }

// Fetch returns the bytes behind a URI. repute.ErrInvalid says why there are none; the error of a context is returned
// as it is.
func (f files) Fetch(ctx context.Context, uri string) ([]byte, error) {
	doc, err := f.client.Fetch(ctx, uri)
	if err == nil {
		return doc.Bytes, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	hint := "try again, or give the content of the file"
	var failure *resolver.Error
	if errors.As(err, &failure) && !failure.Retry {
		hint = "https, ipfs and data: URLs of public hosts at the usual ports are read; or give the content of the file"
	}
	return nil, repute.Invalid("url", "the file cannot be read: "+err.Error(), hint)
}
