package api

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"repute/internal/httpapi"
)

// lastly is the Cache-Control of answers at the newest block, which changes every one or two
// seconds.
const lastly = "public, max-age=2"

// asked is the Cache-Control of an answer that expires at a known time: caches must revalidate it.
const asked = "public, no-cache"

// steady is implemented by bodies with values that change without new data (the clock, the node's
// head). Steady returns the body without them, so that its hash identifies its content.
type steady interface{ Steady() any }

// ok returns an answer that caches may keep until its data changes.
func ok[B any](body B) *output[B] {
	return &output[B]{Status: http.StatusOK, CacheControl: lastly, Body: &body}
}

// settle sets the ETag of the answer, and removes the body if the caller has it already. The tag is
// weak, because it covers block and hash of asOf but not the clock.
func (o *output[B]) settle(ifNoneMatch string) {
	s, has := any(*o.Body).(steady)
	if !has {
		o.CacheControl = "no-store"
		return
	}
	raw, err := json.Marshal(s.Steady())
	if err != nil {
		return // encoding the answer reports the error
	}
	sum := sha256.Sum256(raw)
	o.ETag = `W/"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`
	if httpapi.MatchesETag(ifNoneMatch, o.ETag) {
		o.Status, o.Body = http.StatusNotModified, nil
	}
}
