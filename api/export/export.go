package export

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"repute"
	"repute/internal/cache"
	"repute/internal/httpapi"
	"repute/store"
	"repute/store/exportdb"
)

// Prefix is the path below which the sets are served.
const Prefix = "/export/"

const (
	// manifestWait is how long a caller waits for a manifest before it is told to ask again.
	manifestWait = 10 * time.Second
	// manifestLimit bounds the making of a manifest, which reads the whole set.
	manifestLimit = time.Hour
	// manifestLife is how long a manifest is kept. Repairs make it useless, and another process does not notice.
	manifestLife = 10 * time.Minute
	// keptParts is how many bytes of parts are kept, for callers that ask for ranges of one.
	keptParts = 128 << 20
	// readers is how many parts are read at once, so that exports never use up the connections of readers.
	readers = 2
)

// Files that may be sent at once: to one caller, and to all.
const (
	callerFiles = 4
	allFiles    = 64
)

// piecePlace identifies the bytes of a part.
type piecePlace struct {
	subject
	exportdb.Range
	sum [sha256.Size]byte
}

// exports serves the routes.
type exports struct {
	server    *httpapi.Server
	db        *store.DB
	sets      map[string]dataset
	manifests *cache.Cache[subject, *SetManifest]
	parts     *cache.Cache[piecePlace, []byte]
	reading   chan struct{}
	files     httpapi.StreamLimit
}

// Mount adds the routes of exports to a server.
func Mount(server *httpapi.Server, db *store.DB) {
	e := &exports{server: server, db: db, sets: sets(), reading: make(chan struct{}, readers),
		files: httpapi.StreamLimit{Caller: callerFiles, All: allFiles}}
	e.manifests = cache.New(cache.Bounds{What: "a manifest of an export", Limit: manifestLimit, Asked: 8,
		Memory: 16 << 20, Age: manifestLife},
		func(m *SetManifest) int64 { return 1024 + 512*int64(len(m.Parts)) },
		func(s subject) string { return fmt.Sprint(s) })
	e.parts = cache.New(cache.Bounds{What: "a part of an export", Limit: time.Minute, Asked: allFiles,
		Memory: keptParts},
		func(b []byte) int64 { return int64(len(b)) }, func(p piecePlace) string { return fmt.Sprint(p) })
	schema := server.API.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[SetManifest](), true, "")
	params := e.params()
	server.Get(httpapi.Route{Path: Prefix + "{set}/manifest", ID: "get-export-manifest", Params: params,
		Summary:     "Lists the parts of a whole set of a chain at a final block, with their hashes",
		ContentType: "application/json", Schema: schema}, httpapi.Strict(params, e.manifest))
	params = append(params, partParams()...)
	server.Stream(httpapi.Route{Path: Prefix + "{set}", ID: "export-set", Params: params,
		Summary:     "Sends a whole set of a chain at a final block, or one part of it that a manifest lists",
		ContentType: mediaType(NDJSON), Schema: &huma.Schema{Type: huma.TypeString}}, httpapi.Strict(params, e.file))
	sent := server.API.OpenAPI().Paths[Prefix+"{set}"].Get.Responses["200"]
	sent.Content[mediaType(Parquet)] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
}

// params returns the parameters of both routes.
func (e *exports) params() []*huma.Param {
	set := httpapi.TextParam("set", "path", "what is exported")
	for _, name := range Sets() {
		set.Schema.Enum = append(set.Schema.Enum, name)
	}
	format := httpapi.TextParam("format", "query", NDJSON+" when absent")
	format.Schema.Enum = []any{NDJSON, Parquet}
	return []*huma.Param{set, format,
		httpapi.CountParam("chainId", "query", 1, 1<<53, "the chain; must be given"),
		httpapi.CountParam("block", "query", 0, 1<<53, "a final block; the newest when absent"),
		httpapi.CountParam("run", "query", 1, 1<<53,
			"run of the trust engine that scores are of; the newest closed one up to the block when absent")}
}

// partParams returns the parameters that name a part.
func partParams() []*huma.Param {
	sum := httpapi.TextParam("sha256", "query",
		"the part that has this hash, by after, to, block and format of its manifest")
	sum.Schema.Pattern = "^[0-9a-f]{64}$"
	return []*huma.Param{sum,
		httpapi.TextParam("after", "query", "key after which the rows begin; the first row when absent"),
		httpapi.TextParam("to", "query", "key of the last row; the end of the set when absent")}
}

// asked is a request for an export.
type asked struct {
	set      dataset
	from     source
	exact    bool // the block is named
	subject  subject
	snapshot exportdb.Snapshot
}

// read reads the parameters of both routes and finds the snapshot.
func (e *exports) read(c echo.Context) (a asked, err error) {
	set, known := e.sets[c.Param("set")]
	if !known {
		return a, &repute.MissingError{What: fmt.Sprintf("set %.40q", c.Param("set")),
			Hint: fmt.Sprintf("one of %v", Sets())}
	}
	a.set = set
	format, err := checkFormat(c.QueryParam("format"))
	if err != nil {
		return a, err
	}
	chain, err := repute.ParseChainID(cmp.Or(c.QueryParam("chainId"), "0"))
	if err != nil {
		return a, err
	}
	var block *uint64
	if text := c.QueryParam("block"); text != "" {
		n, err := strconv.ParseUint(text, 10, 63)
		if err != nil {
			return a, repute.Invalid("block", "is no block number", "e.g. 41663783")
		}
		block, a.exact = &n, true
	}
	run, err := strconv.ParseUint(cmp.Or(c.QueryParam("run"), "0"), 10, 63)
	if err != nil {
		return a, repute.Invalid("run", "is no number of a run", "the run of the manifest")
	}
	if a.snapshot, err = exportdb.Resolve(c.Request().Context(), e.db, chain, block, run); err != nil {
		return a, err
	}
	a.from = source{e.db, a.snapshot, format, e.reading}
	a.subject = subject{set.Name(), format, chain, a.snapshot.Block, a.snapshot.Run}
	return a, nil
}

// manifest serves GET /export/{set}/manifest. The manifest of a large set takes longer than a request may: the caller
// is told to ask again while it is made.
func (e *exports) manifest(c echo.Context) error {
	a, err := e.read(c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request().Context(), manifestWait)
	defer cancel()
	c.Response().Header().Set("Repute-Block", strconv.FormatUint(a.snapshot.Block, 10))
	m, err := e.manifests.Get(ctx, a.subject,
		func(ctx context.Context) (*SetManifest, error) { return manifestOf(ctx, a.set, a.from) })
	if errors.Is(err, context.DeadlineExceeded) && c.Request().Context().Err() == nil {
		return &repute.BusyError{What: fmt.Sprintf("the parts of this export at block %d are being made",
			a.subject.block),
			Hint: "name this block with block=" + strconv.FormatUint(a.subject.block, 10), Retry: 5 * time.Second}
	}
	if err != nil {
		return err
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, m)
}

// file serves GET /export/{set}: a part where sha256 names one, otherwise the whole range.
func (e *exports) file(c echo.Context) error {
	sum := c.QueryParam("sha256")
	a, err := e.read(c)
	if err != nil {
		if sum != "" && errors.Is(err, repute.ErrInvalid) && c.QueryParam("block") != "" && isAbout(err, "block") {
			return gone(c.Param("set"), "the chain was indexed anew and has not reached this block")
		}
		return err
	}
	r := exportdb.Range{After: c.QueryParam("after"), To: c.QueryParam("to")}
	if err := errors.Join(a.set.CheckKey("after", r.After), a.set.CheckKey("to", r.To)); err != nil {
		return err
	}
	caller := httpapi.CallerOf(c.Request().Context())
	if err := e.files.Enter(caller); err != nil {
		return err
	}
	defer e.files.Leave(caller)
	if sum == "" {
		return e.whole(c, a, r)
	}
	if !a.exact {
		return repute.Invalid("block", "is needed with sha256", "the block of the manifest")
	}
	return e.part(c, a, r, sum)
}

// isAbout reports whether an error names a field.
func isAbout(err error, field string) bool {
	input, isInput := errors.AsType[*repute.InputError](err)
	return isInput && input.Field == field
}

// describe sets the headers that name the snapshot and the file.
func (e *exports) describe(c echo.Context, a asked) {
	h := c.Response().Header()
	h.Set("Repute-Block", strconv.FormatUint(a.snapshot.Block, 10))
	if a.snapshot.Hash != [32]byte{} {
		h.Set("Repute-Block-Hash", a.snapshot.Hash.Hex())
	}
	if a.snapshot.Run != 0 {
		h.Set("Repute-Run", strconv.FormatUint(a.snapshot.Run, 10))
	}
	h.Set("Content-Type", mediaType(a.subject.format))
	h.Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s-%d-%d.%s"`, a.subject.set, a.subject.chain,
		a.subject.block, a.subject.format))
}

// cachedPart is the Cache-Control of a part: its bytes never change. It is a day and not a year, so that what is denied
// disappears from caches.
const cachedPart = "public, max-age=86400, immutable"

// part sends a part, or a range of its bytes.
func (e *exports) part(c echo.Context, a asked, r exportdb.Range, hash string) error {
	sum, err := hashOf(hash)
	if err != nil {
		return err
	}
	body, err := e.parts.Get(c.Request().Context(), piecePlace{a.subject, r, sum},
		func(ctx context.Context) ([]byte, error) {
			return partOf(ctx, a.set, a.from, r, sum)
		})
	if errors.Is(err, errChanged) {
		e.manifests.Drop(a.subject)
		return gone(a.subject.set, err.Error())
	}
	if err != nil {
		return err
	}
	e.describe(c, a)
	h := c.Response().Header()
	h.Set("ETag", `"`+hex.EncodeToString(sum[:])+`"`)
	h.Set("Cache-Control", cachedPart)
	sendPart(c.Response(), c.Request(), body)
	return nil
}

// gone is the answer for a part that cannot be had any more.
func gone(set, why string) error {
	b := httpapi.NewError(http.StatusGone, "gone", "Gone", why)
	b.Hint = "take a new manifest: GET " + Prefix + set + "/manifest; parts with the same sha256 need not be read again"
	return b
}

// whole sends all rows of a range. It cannot be continued; parts can.
func (e *exports) whole(c echo.Context, a asked, r exportdb.Range) error {
	e.describe(c, a)
	h := c.Response().Header()
	h.Set("Accept-Ranges", "none")
	h.Set("Cache-Control", "no-store")
	out := newPatient(c.Response())
	_, err := a.set.write(c.Request().Context(), a.from, r, true, out)
	switch {
	case err != nil && out.begun:
		out.cut() // otherwise the caller would take what it got for the whole
	case err != nil:
		h.Del("Content-Disposition")
	}
	return err
}
