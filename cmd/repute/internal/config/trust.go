package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"repute"
	"repute/trust/engine"
	"repute/trust/explain"
	"repute/trust/rating"
	"repute/trust/source"
)

// maxTrustFile bounds the files of parameters and tags, in bytes.
const maxTrustFile = 1 << 20

// checkTrust refuses parameters of scores that cannot be meant.
func (c *Config) checkTrust() error {
	_, err := c.Trust.Options()
	return err
}

// Options are those of an engine by the configured files. repute.ErrInvalid: one cannot be read or is wrong. An engine
// is made of them and thrown away, because only that checks parameters and tags together.
func (c trustConfig) Options() (o engine.EngineOptions, err error) {
	if o.Params, err = readTrustFile("trust.params", c.Params); err != nil {
		return o, err
	}
	if o.Tags, err = readTrustFile("trust.tags", c.Tags); err != nil {
		return o, err
	}
	if o.Sources, err = c.Policy(); err != nil {
		return o, err
	}
	o.Finals = keepFinals
	_, err = engine.New(nil, o)
	return o, c.inFile(err)
}

// What the key trust.sources may say instead of the path of a file.
const (
	sourcesDefault = "default"
	sourcesNone    = "none"
)

// SourcesFile returns the text of the configured file of sources, nil where no source counts.
func (c trustConfig) SourcesFile() ([]byte, error) {
	switch c.Sources {
	case sourcesDefault:
		return source.DefaultFile(), nil
	case sourcesNone:
		return nil, nil
	case "":
		return nil, repute.Invalid("trust.sources", "is empty", "default, none, or the path of a file")
	}
	return readTrustFile("trust.sources", c.Sources)
}

// Policy returns the configured sources, nil where none counts. Errors of the embedded file are returned as they are:
// they would be a mistake of this program.
func (c trustConfig) Policy() (*source.Policy, error) {
	text, err := c.SourcesFile()
	if err != nil || text == nil {
		return nil, err
	}
	p, err := source.Parse(text)
	var wrong *repute.InputError
	if errors.As(err, &wrong) && c.Sources != sourcesDefault {
		reason := fmt.Sprintf("%s: %s: %s", c.Sources, wrong.Field, wrong.Reason)
		return nil, repute.Invalid("trust.sources", reason, wrong.Hint)
	}
	return p, err
}

// inFile adds the path of the file that holds the wrong value to an input error of Options: trust.tags
// for a tag, trust.params otherwise. Other errors are returned as they are.
func (c trustConfig) inFile(err error) error {
	var wrong *repute.InputError
	if !errors.As(err, &wrong) {
		return err
	}
	path := c.Params
	if wrong.Field == "tags" || strings.HasPrefix(wrong.Field, "tags: ") {
		path = c.Tags
	}
	if path == "" {
		return err
	}
	return repute.Invalid("trust."+wrong.Field, fmt.Sprintf("%s: %s", path, wrong.Reason), wrong.Hint)
}

// Reader are the options of what explains scores by the configured files.
func (c trustConfig) Reader() (o explain.Options, err error) {
	files, err := c.Options()
	if err == nil {
		o.Params, err = rating.ReadParams(files.Params, files.Tags)
	}
	return o, err
}

// readTrustFile is nil where no file is configured.
func readTrustFile(key, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, repute.Invalid(key, err.Error(), "give a readable file")
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxTrustFile+1))
	if err == nil && len(body) > maxTrustFile {
		err = errors.New("is larger than 1 MiB")
	}
	if err != nil {
		return nil, repute.Invalid(key, fmt.Sprintf("%s: %v", path, err),
			"give a file in the form of the built-in one")
	}
	return body, nil
}
