package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"
	"github.com/sony/gobreaker/v2"
)

// answerLife is how much older than a request an answer to it may be. It is counted from the beginning of the request
// that made the answer, before its snapshot, so that no change is hidden for longer.
const answerLife = time.Second

// answerCache keeps answers in Redis for processes that answer from the same database. While Redis does not answer,
// every request is answered from the database. It holds nothing in this process, so that a restart changes nothing for
// callers.
type answerCache struct {
	client  *redis.Client
	breaker *gobreaker.CircuitBreaker[[]byte]
	log     *slog.Logger
	// name tells apart what is answered from: the database, and the configuration that answers depend on.
	name string
	// mark returns the newest change that the streams of this process have shown. An answer from before it is another
	// key, so that a caller who heard of a change reads it.
	mark func() string
}

// CacheAnswers keeps answers that shared caches may keep, for a second, in the Redis of the server. It does nothing
// without one. name tells apart servers whose answers differ. mark returns a text that changes when answers from before
// must not be used any more; nil: never. It MUST be called before the first request.
func (s *Server) CacheAnswers(name string, mark func() string) {
	if s.redis == nil {
		return
	}
	if mark == nil {
		mark = func() string { return "" }
	}
	s.answers = &answerCache{client: s.redis, breaker: newBreaker[[]byte](), log: s.Log, name: name,
		mark: mark}
}

// remember answers from the cache, or keeps the answer. It MUST be inside of the compression. The rate limit, the token
// and the role were checked before, so that a kept answer is given to nobody who could not get a new one.
func (s *Server) remember(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		a := s.answers
		if a == nil || !s.isShared(c) {
			return next(c)
		}
		began, key := time.Now(), a.key(c.Request())
		if kept, ok := a.get(c.Request().Context(), key); ok {
			c.Response().Header().Set("Cache-Status", "repute; hit") // RFC 9211
			return kept.Send(c)
		}
		kept, whole, err := Record(c, next)
		// Only what is the same for everybody for a while is kept.
		if left := answerLife - time.Since(began); whole && left > 0 && len(kept.Body) > 0 &&
			strings.HasPrefix(kept.CacheControl, "public, max-age=") {
			a.set(c.Request().Context(), key, kept, left)
		}
		return err
	}
}

// isShared reports whether the answer to a request is the same for all callers, as far as the request shows. An API key
// does not matter: it raises a limit and changes no answer.
func (s *Server) isShared(c echo.Context) bool {
	r := c.Request()
	if token := r.Header.Get("Authorization"); token != "" && keyIn(r) == "" {
		return false
	}
	return r.Method == http.MethodGet && !s.raw[c.Path()] && !s.streams[c.Path()] && !quiet(c.Path()) &&
		!s.private(r.URL.Path) && len(s.needs(r, c.Path())) == 0 && !strings.HasPrefix(r.URL.Path, "/v1/")
}

// key returns the key of a request. The lengths keep two parts from being read as others. The version is in it, because
// two versions of the program may use one Redis during an update.
func (a *answerCache) key(r *http.Request) string {
	sum := sha256.New()
	for _, part := range []string{apiVersion, a.name, a.mark(), r.URL.Path, r.URL.RawQuery, r.Header.Get("Accept")} {
		fmt.Fprintf(sum, "%d:%s", len(part), part)
	}
	return "repute:answer:" + hex.EncodeToString(sum.Sum(nil)[:20])
}

// get returns a kept answer. It does not end with the caller's request: a caller who goes away would count as a failure
// of Redis.
func (a *answerCache) get(ctx context.Context, key string) (kept Kept, ok bool) {
	raw, err := a.breaker.Execute(func() ([]byte, error) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisBudget)
		defer cancel()
		raw, err := a.client.Get(bounded, key).Bytes()
		if errors.Is(err, redis.Nil) {
			return nil, nil
		}
		return raw, err
	})
	if err != nil {
		return kept, false
	}
	return parseAnswer(raw)
}

// set keeps an answer. A failure is that of the next get too, which the breaker sees.
func (a *answerCache) set(ctx context.Context, key string, kept Kept, life time.Duration) {
	_, err := a.breaker.Execute(func() ([]byte, error) {
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), redisBudget)
		defer cancel()
		return nil, a.client.Set(bounded, key, bytesOf(kept), life).Err()
	})
	if err != nil {
		a.log.DebugContext(ctx, "an answer is not kept in Redis", "error", err)
	}
}

// bytesOf returns an answer as it is kept: a line for each header, then the body.
func bytesOf(k Kept) []byte {
	return append(fmt.Appendf(nil, "%s\n%s\n%s\n", k.ContentType, k.ETag, k.CacheControl), k.Body...)
}

// parseAnswer reads what bytesOf wrote. The body may have any bytes, also line feeds.
func parseAnswer(raw []byte) (k Kept, ok bool) {
	parts := bytes.SplitN(raw, []byte("\n"), 4)
	if len(parts) != 4 {
		return k, false
	}
	return Kept{string(parts[0]), string(parts[1]), string(parts[2]), parts[3]}, true
}
