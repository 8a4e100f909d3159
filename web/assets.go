package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
)

//go:embed static queries all:templates
var files embed.FS

// assets are the files that pages refer to. The name of each has a hash of its content, so that browsers may keep it for
// ever.
type assets struct {
	named map[string]*httpapi.Fixed // by the name in URLs
	urls  map[string]string         // by the name in templates
}

// readAssets names the embedded files.
func readAssets() (*assets, error) {
	a := &assets{named: map[string]*httpapi.Fixed{}, urls: map[string]string{}}
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
		hash := sha256.Sum256(body)
		url := strings.TrimSuffix(path.Base(name), path.Ext(name)) + "." + hex.EncodeToString(hash[:6]) + path.Ext(name)
		a.named[url], a.urls[path.Base(name)] = httpapi.NewFixed(contentType, body), "/assets/"+url
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("assets: %w", err)
	}
	return a, nil
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
	c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return file.Send(c)
}
