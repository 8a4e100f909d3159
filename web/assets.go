package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/labstack/echo/v4"
)

//go:embed static queries all:templates
var files embed.FS

// asset is one file that pages refer to.
type asset struct {
	contentType  string
	body, packed []byte // as it is, and compressed by gzip
}

// assets are the files that pages refer to. The name of each has a hash of its content, so that browsers may keep it for
// ever.
type assets struct {
	named map[string]asset  // by the name in URLs
	urls  map[string]string // by the name in templates
}

// readAssets compresses and names the embedded files.
func readAssets() (*assets, error) {
	a := &assets{named: map[string]asset{}, urls: map[string]string{}}
	err := fs.WalkDir(files, "static", func(name string, d fs.DirEntry, err error) error {
		types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
			".svg": "image/svg+xml"}
		contentType, known := types[path.Ext(name)]
		if err != nil || d.IsDir() || !known {
			return err
		}
		body, err := files.ReadFile(name)
		if err != nil {
			return err
		}
		packed, err := pack(body)
		if err != nil {
			return err
		}
		hash := sha256.Sum256(body)
		url := strings.TrimSuffix(path.Base(name), path.Ext(name)) + "." + hex.EncodeToString(hash[:6]) + path.Ext(name)
		a.named[url], a.urls[path.Base(name)] = asset{contentType, body, packed}, "/assets/"+url
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("assets: %w", err)
	}
	return a, nil
}

// pack compresses a file as small as gzip can.
func pack(body []byte) ([]byte, error) {
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(body)
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// url returns the URL of a file. An unknown name fails the template that asks for it.
func (a *assets) url(name string) (string, error) {
	url, known := a.urls[name]
	if !known {
		return "", fmt.Errorf("no asset %q", name)
	}
	return url, nil
}

// serve answers GET /assets/:name.
func (a *assets) serve(c echo.Context) error {
	file, known := a.named[c.Param("name")]
	if !known {
		return echo.ErrNotFound
	}
	h := c.Response().Header()
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Add(echo.HeaderVary, echo.HeaderAcceptEncoding)
	if !strings.Contains(c.Request().Header.Get(echo.HeaderAcceptEncoding), "gzip") {
		return c.Blob(http.StatusOK, file.contentType, file.body)
	}
	h.Set(echo.HeaderContentEncoding, "gzip")
	return c.Blob(http.StatusOK, file.contentType, file.packed)
}
