package documents

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"repute"
	"repute/resolver"
	"repute/store"
	"repute/store/denydb"
)

// Denied returns the entry of the operator's deny-list that forbids to fetch a URI, because of its host or its CID; nil
// if none does. Agents that have the URI are not looked at.
func Denied(ctx context.Context, db *store.DB, uri string) (*repute.Denial, error) {
	ref := resolver.Classify(uri)
	if ref.Kind == resolver.KindIPFS {
		return denydb.Denied(ctx, db, repute.Denial{Kind: repute.DenyCID, Value: ref.CID})
	}
	return deniedHost(ctx, db, ref.Host)
}

// DeniedAnswer returns the entry of the deny-list that forbids to show what was fetched, because of the host that
// served it after redirects or of its bytes; nil if none does.
func DeniedAnswer(ctx context.Context, db *store.DB, doc *resolver.Document) (*repute.Denial, error) {
	if doc.Source == resolver.SourceHTTPS {
		if d, err := deniedHost(ctx, db, resolver.HostOf(doc.FinalURL)); d != nil || err != nil {
			return d, err
		}
	}
	sum := sha256.Sum256(doc.Bytes)
	return denydb.Denied(ctx, db, repute.Denial{Kind: repute.DenySHA256, Value: hex.EncodeToString(sum[:])})
}

// deniedHost returns the denial of a host, nil if there is none.
func deniedHost(ctx context.Context, db *store.DB, host string) (*repute.Denial, error) {
	name, _, _ := strings.Cut(host, ":")
	if name == "" || name[0] == '[' {
		return nil, nil
	}
	return denydb.Denied(ctx, db, repute.Denial{Kind: repute.DenyHost, Value: name})
}
