package agents

import (
	"fmt"
	"net/url"
	"path"
	"strings"

	"repute"
)

// sources are URLs below which an answer is evidence, because the operator of the validator chose
// them and not the requester.
type sources []*url.URL

// readSources parses URLs. repute.ErrInvalid: one of them cannot be a source.
func readSources(list []string) (out sources, err error) {
	for _, text := range list {
		u, err := url.Parse(text)
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.User != nil ||
			u.RawQuery != "" ||
			u.Fragment != "" {
			return nil, repute.Invalid("orchestrator.validation_sources", fmt.Sprintf("%.200q is no source", text),
				"http(s)://host[:port][/path] without query and password")
		}
		out = append(out, u)
	}
	return out, nil
}

// has reports whether a URL is below one of the sources.
func (s sources) has(text string) bool {
	u, err := url.Parse(text)
	if err != nil || u.User != nil || u.Path != "" && path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") &&
		u.Path != "/" {
		return false
	}
	for _, source := range s {
		below := strings.TrimSuffix(source.Path, "/") + "/"
		if u.Scheme == source.Scheme && strings.EqualFold(u.Host, source.Host) && strings.HasPrefix(u.Path+"/", below) {
			return true
		}
	}
	return false
}
