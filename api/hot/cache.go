package hot

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common/lru"
	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
	"repute/store"
)

// Bounds of the cache.
const (
	// maxBytes is how much is kept of all answers together.
	maxBytes = 32 << 20
	// maxAge bounds the age of values that depend on the clock and not on the database, such as lagSeconds. It is less
	// than the age that Cache-Control allows.
	maxAge = time.Second
	// patience is how long a caller waits for the same answer that another request computes. Then it computes the
	// answer itself, because the other client may read slowly.
	patience = 100 * time.Millisecond
)

// answer is an answer that may be sent again.
type answer struct {
	httpapi.Kept
	state string // of the database
	at    time.Time
}

// size is what an answer takes in memory, with its key and the entries of maps.
func (a *answer) size(key string) int { return len(a.Body) + len(key) + 512 }

// Cache keeps answers of some routes. Make one with New.
type Cache struct {
	db     *store.DB
	states *states
	routes map[string]bool
	except []string
	age    time.Duration // maxAge

	mu    sync.Mutex
	kept  lru.BasicLRU[string, *answer]
	bytes int
	// making has a channel for each key whose answer is being computed. It is closed when the computation ends.
	making map[string]chan struct{}
}

// New returns an empty cache for the answers of routes, by their patterns in the router's form, to requests without the
// parameters in except. Every answer of these MUST follow from the database, the URL and the clock alone.
func New(db *store.DB, except []string, routes ...string) *Cache {
	c := &Cache{db: db, states: newStates(db), routes: map[string]bool{}, except: except, age: maxAge,
		kept: lru.NewBasicLRU[string, *answer](1 << 20), making: map[string]chan struct{}{}}
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
		state, err := c.state(e.Request())
		if err != nil {
			return next(e) // which fails in its own words
		}
		key := e.Request().URL.Path + "?" + e.Request().URL.RawQuery
		if a := c.get(key, state); a != nil {
			return a.Send(e)
		}
		made, end := c.begin(key)
		if end != nil {
			defer end()
			return c.make(e, next, key, state)
		}
		select {
		case <-made:
		case <-time.After(patience):
		case <-e.Request().Context().Done():
		}
		if a := c.get(key, state); a != nil {
			return a.Send(e)
		}
		return c.make(e, next, key, state) // the other one is slow, failed, or read another state
	}
}

// state returns the state of the database that the answer to a request must be of. A caller who demands a block may
// know of it from elsewhere, so its state MUST be asked for after the request came.
func (c *Cache) state(r *http.Request) (string, error) {
	if has(r.URL.RawQuery, "minBlock") {
		return c.states.current(r.Context())
	}
	return c.states.recent(r.Context())
}

// make answers a request by next, and keeps the answer.
func (c *Cache) make(e echo.Context, next echo.HandlerFunc, key, state string) error {
	answered, whole, err := httpapi.Record(e, next)
	if whole {
		c.put(key, &answer{Kept: answered, state: state, at: time.Now()})
	}
	return err
}

// begin lets one caller make the answer of a key, so that many who ask for the same when it becomes too old do not all
// read it: that one gets a function that it MUST call when it is done, and the others a channel that is closed then.
func (c *Cache) begin(key string) (made <-chan struct{}, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if other, found := c.making[key]; found {
		return other, nil
	}
	done := make(chan struct{})
	c.making[key] = done
	return done, func() {
		c.mu.Lock()
		delete(c.making, key)
		c.mu.Unlock()
		close(done)
	}
}

// keeps reports whether the answer to a request may be kept. No answer is cached with a replica: the state of the
// primary does not tell what the replica has.
func (c *Cache) keeps(e echo.Context) bool {
	r := e.Request()
	return c.routes[e.Path()] && r.Method == http.MethodGet && c.db.Options().ReadURL == "" &&
		!slices.ContainsFunc(c.except, func(name string) bool { return has(r.URL.RawQuery, name) })
}

// has reports whether a query has a parameter. Only a name with a percent sign, which handlers decode, takes parsing.
func has(rawQuery, name string) bool {
	if strings.Contains(rawQuery, name+"=") {
		return true
	}
	if !strings.Contains(rawQuery, "%") {
		return false
	}
	values, _ := url.ParseQuery(rawQuery) // the handler refuses what cannot be read
	return values.Has(name)
}

// get returns the answer to a request in a state, nil when there is none.
func (c *Cache) get(key, state string) *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, found := c.kept.Get(key)
	if !found || a.state != state || time.Since(a.at) > c.age {
		return nil
	}
	return a
}

// put caches an answer, and evicts the least recently used ones above maxBytes.
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
