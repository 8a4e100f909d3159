package api

import (
	"context"

	"repute/internal/httpapi"

	"github.com/danielgtaylor/huma/v2"
)

// fail prepares an error for the wire and logs it when it is ours to mend.
func (a *API) fail(ctx context.Context, err error) *httpapi.ErrorBody {
	return httpapi.Report(ctx, a.log, err)
}

// problemResponse documents the problem body once for every operation.
func problemResponse(h huma.API) *huma.Response {
	return httpapi.ErrorResponse(h.OpenAPI().Components.Schemas, "400 a parameter is wrong, 404 nothing of that name, "+
		"429 too many requests, 503 a dependency is away (see Retry-After).")
}
