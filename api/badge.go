package api

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"repute"
	"repute/api/answers"
	"repute/api/badge"
	"repute/internal/httpapi"
)

const (
	// badgeType is the media type of badges.
	badgeType = "image/svg+xml"
	// badgeCache is the Cache-Control of badges: pages that show one load it again and again.
	badgeCache = "public, max-age=300"
	// badgeStale is how old the newest indexed block is when a badge says that it is stale.
	badgeStale = time.Hour
)

// badgeInput are the parameters of a badge.
type badgeInput struct {
	answers.AgentPath
	answers.Request
	Label string `query:"label" maxLength:"40" doc:"the left part, at most 40 characters; trust when absent" example:"trust"`
}

// mountBadge adds the badges of agents.
func (a *API) mountBadge() {
	onAgent[badgeInput](a, "/badge.svg", "get-badge",
		"Returns an image with an agent's score and tier, to be shown on pages", a.badge, func(op *huma.Operation) {
			image := map[string]*huma.MediaType{badgeType: {Schema: &huma.Schema{Type: huma.TypeString},
				Example: `<svg xmlns="http://www.w3.org/2000/svg" width="96" height="20" role="img"></svg>`}}
			op.Responses["200"] = &huma.Response{Description: "An SVG image without script, style sheet or other files.", Content: image}
			op.Responses["404"] = &huma.Response{Description: "The agent is not indexed: the image says unknown.",
				Content: image}
		})
}

// badgeOutput is an image.
type badgeOutput struct {
	Status       int
	ContentType  string `header:"Content-Type"`
	ETag         string `header:"ETag"`
	CacheControl string `header:"Cache-Control"`
	Body         []byte
}

// settle removes the image if the caller has it already.
func (o *badgeOutput) settle(ifNoneMatch string) {
	if o.Status == http.StatusOK && httpapi.MatchesETag(ifNoneMatch, o.ETag) {
		o.Status, o.Body = http.StatusNotModified, nil
	}
}

// badge serves GET /agents/{id}/badge.svg.
func (a *API) badge(ctx context.Context, ref repute.AgentRef, q *badgeInput) (*badgeOutput, error) {
	label := "trust"
	if q.Label != "" {
		var err error
		if label, err = badge.CheckLabel(q.Label); err != nil {
			return nil, err
		}
	}
	_, score, asOf, err := a.scoreAt(ctx, ref, answers.Latest())
	if err != nil && httpapi.ErrorOf(err).Status == http.StatusNotFound {
		return newBadge(http.StatusNotFound, badge.Unknown(label)), nil
	}
	if err != nil {
		return nil, err
	}
	isStale := asOf.LagSeconds == nil || time.Duration(*asOf.LagSeconds)*time.Second > badgeStale
	return newBadge(http.StatusOK, badge.Of(label, score, isStale)), nil
}

// newBadge draws a badge.
func newBadge(status int, b badge.Badge) *badgeOutput {
	svg := b.SVG()
	sum := sha256.Sum256(svg)
	return &badgeOutput{Status: status, ContentType: badgeType, CacheControl: badgeCache, Body: svg,
		ETag: `"` + base64.RawURLEncoding.EncodeToString(sum[:18]) + `"`}
}
