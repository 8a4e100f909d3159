package api

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"riverqueue.com/riverui"

	"repute"
	"repute/internal/httpapi"
)

// adminPrefix is the path of the job queue's pages.
const adminPrefix = "/admin/jobs"

// adminPolicy is the policy of the dashboard for pages that style themselves.
const adminPolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; font-src 'self'; " +
	"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Limit of answers to wrong tokens per caller: several at first, then one every ten seconds.
// Guessing is prevented by the length of the token.
const (
	wrongTokens      = 10
	wrongTokenPeriod = 10 * time.Second
)

// admin admits callers whose token has the role operate.
type admin struct {
	tokenOf func(string) *httpapi.Token
	wrong   *httpapi.Limiter // of callers that were wrong
}

// mountAdmin adds the operator's pages. Without a token of the role operate there are none.
func (a *API) mountAdmin() error {
	if !a.server.HasTokens(httpapi.RoleOperate) {
		return nil
	}
	client, err := river.NewClient(riverpgxv5.New(a.DB.Pool()), &river.Config{Logger: a.log})
	if err != nil {
		return fmt.Errorf("job queue: %w", err)
	}
	pages, err := riverui.NewHandler(&riverui.HandlerOpts{
		Endpoints: riverui.NewEndpoints(client, nil), Logger: a.log, Prefix: adminPrefix,
		JobListHideArgsByDefault: true,
	})
	if err != nil {
		return fmt.Errorf("pages of the job queue: %w", err)
	}
	guard := admin{tokenOf: a.server.TokenOf,
		wrong: httpapi.NewLimiter("", 1/wrongTokenPeriod.Seconds(), wrongTokens, nil, a.log)}
	show := func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Content-Security-Policy", adminPolicy)
		h.Set("Cache-Control", "no-store")
		// which not every machine knows the type of: the page adds text/plain
		if strings.HasSuffix(c.Request().URL.Path, ".svg") {
			c.Response().Before(func() { h.Set("Content-Type", "image/svg+xml") })
		}
		pages.ServeHTTP(c.Response(), c.Request())
		return nil
	}
	a.server.Raw(adminPrefix + "/*") // the pages distinguish paths by a slash at the end
	a.server.Echo.Any(adminPrefix, show, guard.check)
	a.server.Echo.Any(adminPrefix+"/*", show, guard.check)
	return nil
}

// check requires the token as bearer token, or as the password of any user, which a browser can
// send. A browser adds the password also to requests that pages of other sites cause: httpapi.Guard
// MUST refuse those.
func (g admin) check(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		given, has := tokenIn(c.Request())
		if !has {
			return unauthorized(c, "an operator's token is needed")
		}
		if g.isRight(given) {
			return next(c)
		}
		if g.wrong.Allow(c.Request().Context(), httpapi.CallerKey(c.RealIP())) > 0 {
			b := *httpapi.ErrorOf(fmt.Errorf("too many wrong tokens: %w", repute.ErrLimited))
			b.Retry = wrongTokenPeriod
			return &b
		}
		return unauthorized(c, "the token is wrong")
	}
}

// isRight does not depend on earlier wrong tokens, because callers behind one address could then
// lock the operator out.
func (g admin) isRight(given string) bool {
	t := g.tokenOf(given)
	return t != nil && t.May(httpapi.RoleOperate) == nil
}

// tokenIn returns the token of a request.
func tokenIn(r *http.Request) (token string, has bool) {
	if _, password, isBasic := r.BasicAuth(); isBasic {
		return password, true
	}
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), found && strings.EqualFold(scheme, "Bearer")
}

// unauthorized answers 401 with both authentication schemes, so that a browser asks for the token.
func unauthorized(c echo.Context, detail string) error {
	c.Response().Header().Add("WWW-Authenticate", `Basic realm="repute", charset="UTF-8"`)
	c.Response().Header().Add("WWW-Authenticate", `Bearer realm="repute"`)
	b := httpapi.NewError(http.StatusUnauthorized, "unauthorized", "Unauthorized", detail)
	b.Hint = "Authorization: Bearer {token}, or any user with the token for a password; one of orchestrator.tokens with the role operate"
	return b
}
