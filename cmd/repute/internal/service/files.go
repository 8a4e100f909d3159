package service

import (
	"context"
	"errors"
	"fmt"

	"repute"
	"repute/indexer/documents"
	"repute/resolver"
	"repute/store"
)

// files reads files that callers of the API name, through the guard of documents and the operator's deny-list. The
// deny-list is asked twice, for the URI before the fetch and for the bytes after it, because a denied document may be
// at another URI.
type files struct {
	client *resolver.Client
	db     *store.DB
}

// Fetch returns the bytes behind a URI. repute.ErrInvalid says why there are none, in words of this program: causes
// name addresses that strangers must not learn. It is repute.ErrNotFound too where the host has no such file. The error
// of a context is returned as it is.
func (f files) Fetch(ctx context.Context, uri string) ([]byte, error) {
	if denied, err := documents.Denied(ctx, f.db, uri); err != nil || denied != nil {
		return nil, refused(denied, err)
	}
	doc, err := f.client.Fetch(ctx, uri)
	if err != nil {
		return nil, unread(ctx, err)
	}
	if denied, err := documents.DeniedAnswer(ctx, f.db, &doc); err != nil || denied != nil {
		return nil, refused(denied, err)
	}
	return doc.Bytes, nil
}

// refused returns the error of a file that the deny-list forbids; err itself where that is not known.
func refused(d *repute.Denial, err error) error {
	if err != nil {
		return err
	}
	return repute.Invalid("url", "the file is not read: the operator denied it: "+d.Reason, "the URL of another file")
}

// unread returns the error of a file that cannot be fetched.
func unread(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	why, hint := "something broke on the way", "try again, or give the content of the file"
	var failure *resolver.Error
	if errors.As(err, &failure) {
		why = failure.Reason.Words()
		if !failure.Retry {
			hint = "https, ipfs and data: URLs of public hosts at the usual ports are read; or give the content of the file"
		}
	}
	err = repute.Invalid("url", "the file cannot be read: "+why, hint)
	if failure != nil && failure.Reason == resolver.ReasonNotFound {
		return fmt.Errorf("%w: %w", err, repute.ErrNotFound)
	}
	return err
}
