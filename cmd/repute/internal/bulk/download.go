package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"repute"
	"repute/api/export"
	"repute/internal/httprule"
)

const (
	// attempts is how often the request for a part is sent without getting any of it before a download gives up.
	attempts = 12
	// manifestAttempts is the same for a manifest, whose hashes a server may need an hour for.
	manifestAttempts = 720
	// attemptTimeout bounds one request with its body. What came until then is kept.
	attemptTimeout = 10 * time.Minute
	// longestWait bounds a pause that a server asks for.
	longestWait = 30 * time.Second
	// maxManifest bounds a manifest, in bytes: a part has some 400.
	maxManifest = 256 << 20
)

// manifestFile is the name of the manifest in the directory of a set.
const manifestFile = "manifest.json"

// errAgain marks failures after which the same request may succeed. Among them are those of the network, 429, and every
// status from 500 on.
var errAgain = errors.New("temporary")

// errGone is returned for parts whose bytes can no longer be had. The answer is 410: what the server has of the block
// has changed, and the same bytes cannot be made.
var errGone = errors.New("the server can no longer make the parts of this manifest")

// downloader downloads sets, one after the other. It is not safe for concurrent use, and neither are two downloads into
// one directory.
type downloader struct {
	downloadFlags // block becomes that of the first manifest, so that all sets are of one block
	key           string
	http          *http.Client
	rest          time.Duration // first pause before a request is repeated
}

// newDownloader returns a downloader that sends an API key, unless it is empty.
func newDownloader(f downloadFlags, key string) *downloader {
	f.server = strings.TrimRight(f.server, "/")
	return &downloader{downloadFlags: f, key: key, http: &http.Client{Timeout: attemptTimeout}, rest: time.Second}
}

// set downloads one set, and returns its manifest and how many bytes were fetched. Where the server can no longer make
// the parts, because what it has of the block has changed, the newest manifest is taken, once. In that case the block
// of the command is given up too; sets after this one are then of the new block, and those before it of the old one.
func (d *downloader) set(ctx context.Context, name string) (*export.SetManifest, int64, error) {
	dir := filepath.Join(d.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, 0, repute.Invalid("out", err.Error(), "a directory that can be written")
	}
	m, err := d.began(dir, name)
	if err != nil {
		return nil, 0, err
	}
	var fetched int64
	for again := range 2 {
		if m == nil {
			if m, err = d.manifest(ctx, dir, name); err != nil {
				return nil, fetched, err
			}
		}
		var n int64
		n, err = d.parts(ctx, dir, m)
		fetched += n
		if !errors.Is(err, errGone) || again > 0 {
			break
		}
		m, d.block = nil, 0
	}
	return m, fetched, err
}

// began returns the manifest of a download of the same set that began, nil for none. A manifest of another chain, block
// or format is repute.ErrInvalid, because its parts would be removed.
func (d *downloader) began(dir, name string) (*export.SetManifest, error) {
	if d.again {
		return nil, nil
	}
	m, err := readManifest(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if m.Set != name || m.Format != d.format || m.ChainID != d.chain || d.block != 0 && m.Block != d.block {
		return nil, repute.Invalid("out", fmt.Sprintf("%s has %s of chain %d at block %d as %s", dir, m.Set, m.ChainID,
			m.Block,
			m.Format), "another directory, or --again to replace it")
	}
	return m, nil
}

// readManifest reads the manifest in a directory.
func readManifest(dir string) (*export.SetManifest, error) {
	raw, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	var m export.SetManifest
	if err := json.Unmarshal(raw, &m); err != nil || !isManifest(&m) {
		return nil, repute.Invalid("out", filepath.Join(dir, manifestFile)+" is no manifest", "remove the directory")
	}
	return &m, nil
}

// isManifest reports whether a manifest can be one of this product. What a stranger's server writes becomes a part of
// paths and, in ClickHouse, of statements: names MUST be those of sets and formats, and hashes nothing but hex.
func isManifest(m *export.SetManifest) bool {
	isPart := func(p export.SetPart) bool {
		raw, err := hex.DecodeString(p.SHA256)
		return err == nil && len(raw) == sha256.Size && p.Bytes >= 0 && strings.HasPrefix(p.URL, export.Prefix)
	}
	return slices.Contains(export.Sets(), m.Set) && (m.Format == export.Parquet || m.Format == export.NDJSON) &&
		!slices.ContainsFunc(m.Parts, func(p export.SetPart) bool { return !isPart(p) })
}

// manifest asks for a manifest and stores it. It is stored before the first part is fetched, so that a repeated command
// goes on with the same hashes.
func (d *downloader) manifest(ctx context.Context, dir, name string) (*export.SetManifest, error) {
	q := url.Values{"chainId": {strconv.FormatUint(d.chain, 10)}, "format": {d.format}}
	if d.block != 0 {
		q.Set("block", strconv.FormatUint(d.block, 10))
	}
	var m export.SetManifest
	err := d.try(ctx, manifestAttempts, func(ctx context.Context) (bool, error) {
		return false, d.ask(ctx, export.Prefix+name+"/manifest", q, &m)
	})
	switch {
	case err != nil:
		return nil, err
	case m.Set != name || m.Format != d.format || m.ChainID != d.chain || !isManifest(&m):
		return nil, fmt.Errorf("the server answers with a manifest of something else than was asked for: %w",
			repute.ErrInvalid)
	}
	raw, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, err
	}
	return &m, replaceFile(filepath.Join(dir, manifestFile), raw)
}

// ask sends one request for a manifest. It adds the block that the server is making one for to the query, so that the
// next request finds it. While the manifest is made the server answers that it is busy, with the block in the header
// Repute-Block.
func (d *downloader) ask(ctx context.Context, path string, q url.Values, m *export.SetManifest) error {
	res, err := d.get(ctx, path+"?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if block := res.Header.Get("Repute-Block"); block != "" {
		q.Set("block", block)
	}
	if err := d.refused(res); err != nil {
		return err
	}
	if err := json.NewDecoder(io.LimitReader(res.Body, maxManifest)).Decode(m); err != nil {
		return fmt.Errorf("the manifest cannot be read: %w: %w", errAgain, err)
	}
	return nil
}

// replaceFile writes a file that is complete or absent. It does not sync: a manifest that a crash of the machine
// damaged is refused by readManifest.
func replaceFile(name string, raw []byte) error {
	if err := os.WriteFile(name+".new", raw, 0o644); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// partFile returns the name of a part's file.
func partFile(dir string, m *export.SetManifest, n int) string {
	return filepath.Join(dir, fmt.Sprintf("part-%05d.%s", n, m.Format))
}

// parts downloads the parts that are not there yet and removes files of parts that the manifest does not have. A part
// counts as downloaded by the hash of its file and not by its name, so that a damaged one is fetched again. Files of a
// longer manifest that this one replaces would otherwise be read by tools that take part-*.
func (d *downloader) parts(ctx context.Context, dir string, m *export.SetManifest) (fetched int64, err error) {
	for n, part := range m.Parts {
		name := partFile(dir, m, n)
		if sum, _, err := hashFile(name); err == nil && sum == part.SHA256 {
			continue
		}
		got, err := d.part(ctx, name, part)
		fetched += got
		if err != nil {
			return fetched, err
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "part-*"))
	if err != nil {
		return fetched, err
	}
	wanted := map[string]bool{}
	for n := range m.Parts {
		wanted[partFile(dir, m, n)] = true
	}
	for _, name := range files {
		if !wanted[name] {
			if err := os.Remove(name); err != nil {
				return fetched, err
			}
		}
	}
	return fetched, nil
}

// part downloads a part, from where an earlier attempt ended, and gives it its name once its hash is right. A file
// whose hash is wrong is removed, because a range would only add to it, and fetched from its beginning.
func (d *downloader) part(ctx context.Context, name string, p export.SetPart) (fetched int64, err error) {
	partial := name + ".partial"
	err = d.try(ctx, attempts, func(ctx context.Context) (bool, error) {
		n, err := d.fetch(ctx, partial, p)
		fetched += n
		if err != nil {
			return n > 0, err
		}
		sum, size, err := hashFile(partial)
		if err == nil && (sum != p.SHA256 || size != p.Bytes) {
			err = errors.Join(os.Remove(partial), fmt.Errorf("a part has not the hash of its manifest: %w", errAgain))
		}
		return false, err
	})
	if err != nil {
		return fetched, err
	}
	return fetched, os.Rename(partial, name)
}

// fetch adds to a file what it lacks of a part. If-Range makes the server send the whole if it has other bytes now. One
// byte more than the part is read, by which an answer that is too long is found by its size. fetched counts bytes of
// the body, also those that replace earlier ones.
func (d *downloader) fetch(ctx context.Context, partial string, p export.SetPart) (fetched int64, err error) {
	file, err := os.OpenFile(partial, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	have, err := file.Seek(0, io.SeekEnd)
	if err != nil || have == p.Bytes {
		return 0, err
	}
	header := http.Header{}
	if have > 0 && have < p.Bytes {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		header.Set("If-Range", strconv.Quote(p.SHA256))
	}
	res, err := d.get(ctx, p.URL, header)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	if err := d.refused(res); err != nil {
		return 0, err
	}
	if res.StatusCode != http.StatusPartialContent { // the whole
		if err := file.Truncate(0); err != nil {
			return 0, err
		}
		if _, err := file.Seek(0, io.SeekStart); err != nil {
			return 0, err
		}
	}
	fetched, err = io.Copy(file, io.LimitReader(res.Body, p.Bytes+1))
	if err != nil {
		err = fmt.Errorf("%w: %w", errAgain, err)
	}
	return fetched, err
}

// get sends a request.
func (d *downloader) get(ctx context.Context, path string, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.server+path, nil)
	if err != nil {
		return nil, repute.Invalid("server", "is no URL", "e.g. http://127.0.0.1:8080")
	}
	for name, values := range header {
		req.Header[name] = values
	}
	if d.key != "" {
		req.Header.Set("X-API-Key", d.key)
	}
	res, err := d.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAgain, err)
	}
	return res, nil
}

// waitError is a failure after which the server asks for a pause. A pause of 0 means that the server named none.
type waitError struct {
	error
	pause time.Duration
}

// Unwrap returns the failure.
func (w *waitError) Unwrap() error { return w.error }

// refused returns why an answer is no success. Redirects are followed by the client before this; a status of 300 that
// is left is repute.ErrInvalid.
func (d *downloader) refused(res *http.Response) error {
	if res.StatusCode == http.StatusOK || res.StatusCode == http.StatusPartialContent {
		return nil
	}
	var problem struct {
		Detail string `json:"detail"`
		Hint   string `json:"hint"`
	}
	raw, _ := io.ReadAll(io.LimitReader(res.Body, 64<<10)) // without a body the status says it
	_ = json.Unmarshal(raw, &problem)
	text := strings.TrimSuffix(fmt.Sprintf("the server answers with status %d: %.300s; %.300s", res.StatusCode,
		problem.Detail,
		problem.Hint), "; ")
	switch {
	case res.StatusCode == http.StatusGone:
		return fmt.Errorf("%s: %w", text, errGone)
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode >= http.StatusInternalServerError:
		wait := httprule.RetryAfter(res.Header.Get("Retry-After"), time.Now())
		return &waitError{fmt.Errorf("%s: %w", text, errAgain), min(wait, longestWait)}
	case res.StatusCode == http.StatusNotFound:
		return fmt.Errorf("%s: %w", text, repute.ErrNotFound)
	}
	return fmt.Errorf("%s: %w", text, repute.ErrInvalid)
}

// try repeats what fails temporarily, with growing pauses or those that the server asks for. It gives up after the most
// attempts in a row that made no progress, as do reports it. Progress also resets the pause, so that a connection that
// breaks after each megabyte goes on at once.
func (d *downloader) try(ctx context.Context, most int, do func(context.Context) (progress bool, err error)) error {
	pause, failures := d.rest, 0
	for {
		progress, err := do(ctx)
		if err == nil || !errors.Is(err, errAgain) {
			return err
		}
		if failures++; progress {
			pause, failures = d.rest, 0
		}
		if failures == most {
			return fmt.Errorf("%w: %w; repeat the command to continue", repute.ErrUnavailable, err)
		}
		rest := pause
		var wait *waitError
		if errors.As(err, &wait) && wait.pause > 0 {
			rest = wait.pause
		}
		repute.Pause(ctx, rest)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		pause = min(2*pause, longestWait)
	}
}

// hashFile returns the sha256 of a file in hex, and its size.
func hashFile(name string) (sum string, size int64, err error) {
	file, err := os.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	h := sha256.New()
	size, err = io.Copy(h, file)
	return hex.EncodeToString(h.Sum(nil)), size, err
}
