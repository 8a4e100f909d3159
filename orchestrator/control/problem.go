package control

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"repute/internal/httpapi"
)

// fail prepares an error for the wire and logs it when it is ours to mend.
func (c *Control) fail(ctx context.Context, err error) *httpapi.ErrorBody {
	return httpapi.Report(ctx, c.log, err)
}

// problemResponse documents the problem body once for every operation.
func problemResponse(h huma.API) *huma.Response {
	return httpapi.ErrorResponse(h.OpenAPI().Components.Schemas,
		"400 a field is wrong, 401 a bearer token is missing or wrong, "+
			"404 nothing of that name, 409 what is stored forbids it, 429 too many requests or streams, 503 a dependency is away (see Retry-After).")
}
