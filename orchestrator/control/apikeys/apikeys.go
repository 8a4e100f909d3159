// Package apikeys has the routes by which operators make, list and revoke API keys, and the Source by which a server
// finds the key of a request.
//
// A key gives its holder a rate of requests and a scope, and no role: what needs a role needs a token of the
// configuration. The text of a key is in the answer that made it and never again, as only its sha256 is stored. A
// name is never used again, so that logs stay unambiguous. A revoked or expired key stays listed. A server may go on
// with a revoked key for as long as it remembers keys.
package apikeys

import (
	"context"
	"crypto/sha256"
	"net/http"
	"time"

	"repute/internal/httpapi"
	"repute/orchestrator/control/rest"
	"repute/store"
	"repute/store/keydb"
)

// APIKey is an API key in answers.
type APIKey struct {
	Name     string     `json:"name"`
	Scopes   []string   `json:"scopes" doc:"read: all routes but exports; export: those of exports"`
	Rate     int        `json:"rate" doc:"requests per second"`
	Expires  *time.Time `json:"expires" doc:"null for never"`
	Created  time.Time  `json:"created"`
	Revoked  *time.Time `json:"revoked" doc:"null while it works"`
	LastUsed *string    `json:"lastUsed" format:"date" doc:"the day of its last use, in UTC; null before the first"`
	Key      *string    `json:"key,omitempty" doc:"the text of the key, in the answer that made it and never again"`
}

// APIKeyList is the answer with all keys.
type APIKeyList struct {
	Keys []APIKey `json:"keys"`
}

// APIKeyRequest is a request for a key.
type APIKeyRequest struct {
	Name    string     `json:"name" pattern:"^[a-z0-9][a-z0-9._-]{0,39}$" doc:"shown in lists and logs; never used again"`
	Scopes  []string   `json:"scopes,omitempty" enum:"read,export" doc:"read when absent"`
	Rate    int        `json:"rate" minimum:"1" maximum:"100000" doc:"requests per second"`
	Expires *time.Time `json:"expires,omitempty" doc:"never when absent"`
}

// Encode converts a key to its answer, without its text.
func Encode(k keydb.Key) APIKey {
	out := APIKey{Name: k.Name, Scopes: k.Scopes, Rate: k.Rate, Expires: k.Expires, Created: k.Created,
		Revoked: k.Revoked}
	if k.LastUsed != nil {
		day := k.LastUsed.Format(time.DateOnly)
		out.LastUsed = &day
	}
	return out
}

// nameInput is the path parameter of a key.
type nameInput struct {
	Name string `path:"name"`
}

// Mount adds the routes.
func Mount(r *rest.Router, db *store.DB) {
	rest.Read(r, "/keys", "list-api-keys", "Lists API keys, also those that no longer work",
		func(ctx context.Context, _ *struct{}) (*rest.Answer[APIKeyList], error) {
			keys, err := keydb.List(ctx, db)
			out := APIKeyList{Keys: []APIKey{}}
			for _, k := range keys {
				out.Keys = append(out.Keys, Encode(k))
			}
			return rest.Say(&out), err
		})
	rest.Write[APIKeyRequest](r, http.MethodPost, "/keys", "add-api-key",
		"Makes an API key; the answer alone has its text",
		func(ctx context.Context, _ string, _ *struct{}, q APIKeyRequest) (*rest.Answer[APIKey], error) {
			return add(ctx, db, q)
		})
	rest.Write[rest.None](r, http.MethodDelete, "/keys/{name}", "revoke-api-key", "Revokes an API key",
		func(ctx context.Context, _ string, in *nameInput, _ rest.None) (*rest.Answer[APIKey], error) {
			k, err := keydb.Revoke(ctx, db, in.Name)
			out := Encode(k)
			return rest.Say(&out), err
		})
	r.AddStatus("201", "The key was made.", "/keys")
}

// add makes a key.
func add(ctx context.Context, db *store.DB, q APIKeyRequest) (*rest.Answer[APIKey], error) {
	k := keydb.Key{Name: q.Name, Scopes: q.Scopes, Rate: q.Rate, Expires: q.Expires, Created: time.Now().UTC()}
	if len(k.Scopes) == 0 {
		k.Scopes = []string{httpapi.ScopeRead}
	}
	text, err := keydb.Add(ctx, db, k)
	if err != nil {
		return nil, err
	}
	out := Encode(k)
	out.Key = &text
	answer := rest.Say(&out)
	answer.Status = http.StatusCreated
	return answer, nil
}

// Source finds keys in a database, for httpapi.ServerOptions.
type Source struct{ DB *store.DB }

// Find implements httpapi.KeySource.
func (s Source) Find(ctx context.Context, hash [sha256.Size]byte) (httpapi.APIKey, error) {
	k, err := keydb.Find(ctx, s.DB, hash)
	return httpapi.APIKey{Name: k.Name, Rate: k.Rate, Scopes: k.Scopes}, err
}

var _ httpapi.KeySource = Source{}
