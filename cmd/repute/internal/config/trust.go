package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"repute"
	"repute/trust"
	"repute/trust/engine"
)

// maxTrustFile bounds the files of parameters and tags, in bytes.
const maxTrustFile = 1 << 20

// checkTrust refuses parameters of scores that cannot be meant.
func (c *Config) checkTrust() error {
	_, err := c.Trust.Options()
	return err
}

// Options are those of an engine by the configured files. repute.ErrInvalid: one cannot
// be read or is wrong.
func (c trustConfig) Options() (o engine.EngineOptions, err error) {
	if o.Params, err = readTrustFile("trust.params", c.Params); err != nil {
		return o, err
	}
	if o.Tags, err = readTrustFile("trust.tags", c.Tags); err != nil {
		return o, err
	}
	o.Finals = keepFinals
	_, err = engine.New(nil, o)
	return o, c.inFile(err)
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
func (c trustConfig) Reader() (o engine.ReaderOptions, err error) {
	files, err := c.Options()
	if err == nil {
		o.Params, err = trust.ReadParams(files.Params, files.Tags)
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
		return nil, repute.Invalid(key, err.Error(), "give a readable JSON file")
	}
	defer file.Close()
	body, err := io.ReadAll(io.LimitReader(file, maxTrustFile+1))
	if err == nil && len(body) > maxTrustFile {
		err = errors.New("is larger than 1 MiB")
	}
	if err != nil {
		return nil, repute.Invalid(key, fmt.Sprintf("%s: %v", path, err), "give a file like the one that repute comes with")
	}
	return body, nil
}
