package hot

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
	"repute/store"
)

// Bounds of what is kept.
const (
	// maxBytes is how much is kept of all answers together.
	maxBytes = 32 << 20
	// maxAnswer is the largest answer that is kept.
	maxAnswer = 256 << 10
	// maxAge bounds the age of what depends on the clock and not on the database, such as how late the index is. It is
	// less than the age that Cache-Control allows.
	maxAge = time.Second
)

// answer is an answer that may be sent again.
type answer struct {
	state  string // of the database
	at     time.Time
	header http.Header
	body   []byte
}

// size is what an answer takes in memory, with its key and the entries of maps.
func (a *answer) size(key string) int { return len(a.body) + len(key) + 512 }

// Cache keeps answers of some routes. Make one with New.
type Cache struct {
	states *states
	routes map[string]bool
	except []string

	mu    sync.Mutex
	kept  lru.BasicLRU[string, *answer]
	bytes int
}

// New returns an empty cache for the answers of routes, by their patterns in the router's form, to requests without the
// parameters in except. Every answer of these MUST follow from the database, the URL and the clock alone.
func New(db *store.DB, except []string, routes ...string) *Cache {
	c := &Cache{states: newStates(db), routes: map[string]bool{}, except: except,
		kept: lru.NewBasicLRU[string, *answer](1 << 20)}
	for _, r := range routes {
		c.routes[r] = true
	}
	return c
}

// Middleware answers requests from the cache and keeps new answers. It MUST be inside of everything that checks and
// counts callers.
func (c *Cache) Middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(e echo.Context) error {
		if !c.keeps(e) {
			return next(e)
		}
		state, err := c.states.current(e.Request().Context())
		if err != nil {
			return next(e) // which fails in its own words
		}
		key := e.Request().URL.Path + "?" + e.Request().URL.RawQuery
		if a := c.get(key, state); a != nil {
			return a.send(e)
		}
		r := e.Response()
		rec := &recorder{ResponseWriter: r.Writer}
		r.Writer = rec
		err = next(e)
		r.Writer = rec.ResponseWriter
		if err == nil && rec.status == http.StatusOK && !rec.isLong && r.Header().Get("ETag") != "" {
			c.put(key, &answer{state: state, at: time.Now(), header: kept(r.Header()), body: rec.body.Bytes()})
		}
		return err
	}
}

// keeps reports whether the answer to a request may be kept.
func (c *Cache) keeps(e echo.Context) bool {
	r := e.Request()
	return c.routes[e.Path()] && r.Method == http.MethodGet && !slices.ContainsFunc(c.except,
		func(name string) bool { return strings.Contains(r.URL.RawQuery, name+"=") })
}

// headers are those that belong to an answer and not to its request.
func headers() []string {
	return []string{echo.HeaderContentType, "ETag", echo.HeaderCacheControl}
}

// kept returns the headers that belong to an answer.
func kept(h http.Header) http.Header {
	out := http.Header{}
	for _, name := range headers() {
		if v := h.Get(name); v != "" {
			out.Set(name, v)
		}
	}
	return out
}

// send writes the answer, or says that the caller has it.
func (a *answer) send(e echo.Context) error {
	h := e.Response().Header()
	for name, values := range a.header {
		h[name] = values
	}
	if httpapi.MatchesETag(e.Request().Header.Get("If-None-Match"), a.header.Get("ETag")) {
		h.Del(echo.HeaderContentType)
		return e.NoContent(http.StatusNotModified)
	}
	e.Response().WriteHeader(http.StatusOK)
	_, err := e.Response().Write(a.body)
	return err
}

// get returns the answer to a request in a state, nil when there is none.
func (c *Cache) get(key, state string) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, found := c.kept.Get(key)
	if !found || a.state != state || time.Since(a.at) > maxAge {
		return nil
	}
	return a
}

// put keeps an answer, and drops those that were not asked for the longest.
func (c *Cache) put(key string, a *answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, found := c.kept.Peek(key); found {
		c.bytes -= old.size(key)
	}
	c.kept.Add(key, a)
	for c.bytes += a.size(key); c.bytes > maxBytes; {
		k, old, found := c.kept.RemoveOldest()
		if !found {
			return
		}
		c.bytes -= old.size(k)
	}
}

// recorder copies an answer while it is written.
type recorder struct {
	http.ResponseWriter
	status int
	body   bytes.Buffer
	isLong bool // and not copied to its end
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(b []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	if r.isLong = r.isLong || r.body.Len()+len(b) > maxAnswer; !r.isLong {
		r.body.Write(b)
	}
	return r.ResponseWriter.Write(b)
}

// Unwrap returns the writer below, for http.ResponseController.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }
