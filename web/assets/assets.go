// Package assets serves the files that pages refer to: styles, scripts and drawings. The name of each in URLs has a
// hash of its content, so that browsers may keep it for ever: a file with other content has another name.
package assets

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/labstack/echo/v4"

	"repute/internal/httpapi"
)

// Set are the files of the dashboard. Make one with Read.
type Set struct {
	named map[string]*httpapi.Fixed // by the name in URLs
	urls  map[string]string         // by the name in templates
}

// Read names the files in the folder dir of files. Those of other types than pages need are left out.
func Read(files fs.FS, dir string) (*Set, error) {
	s := &Set{named: map[string]*httpapi.Fixed{}, urls: map[string]string{}}
	err := fs.WalkDir(files, dir, func(name string, d fs.DirEntry, err error) error {
		types := map[string]string{".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8",
			".svg": "image/svg+xml"}
		contentType, known := types[path.Ext(name)]
		if err != nil || d.IsDir() || !known {
			return err
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		hash := sha256.Sum256(body)
		url := strings.TrimSuffix(path.Base(name), path.Ext(name)) + "." + hex.EncodeToString(hash[:6]) + path.Ext(name)
		s.named[url], s.urls[path.Base(name)] = httpapi.NewFixed(contentType, body), "/assets/"+url
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("assets: %w", err)
	}
	return s, nil
}

// URL returns the URL of a file. An unknown name fails the template that asks for it.
func (s *Set) URL(name string) (string, error) {
	url, known := s.urls[name]
	if !known {
		return "", fmt.Errorf("no asset %q", name)
	}
	return url, nil
}

// Serve answers GET /assets/:name.
func (s *Set) Serve(c echo.Context) error {
	file, known := s.named[c.Param("name")]
	if !known {
		return echo.ErrNotFound
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return file.Send(c)
}
