package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
)

// lastly is how long an answer may be reused without asking again: chains move
// every second or two.
const lastly = "public, max-age=2"

// asked is for an answer that ends at a time of its own: it is kept, but not given again
// without asking.
const asked = "public, no-cache"

// steady is a body that can leave out what moves while nothing happens (the
// clock, the node's head), so that its hash names its content.
type steady interface{ Steady() any }

// ok makes an answer that caches may keep until its data changes.
func ok[B any](body B) *output[B] {
	return &output[B]{Status: http.StatusOK, CacheControl: lastly, Body: &body}
}

// settle gives the answer its ETag and empties it when the caller has it
// already. The tag is weak: asOf's clock is not in it, block and hash are.
func (o *output[B]) settle(ifNoneMatch string) {
	s, has := any(*o.Body).(steady)
	if !has {
		o.CacheControl = "no-store"
		return
	}
	raw, err := json.Marshal(s.Steady())
	if err != nil {
		return // encoding the answer itself will say so
	}
	sum := sha256.Sum256(raw)
	o.ETag = `W/"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
	if matches(ifNoneMatch, o.ETag) {
		o.Status, o.Body = http.StatusNotModified, nil
	}
}

// matches compares weakly, as RFC 9110 wants for If-None-Match.
func matches(header, etag string) bool {
	for _, candidate := range strings.Split(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}
