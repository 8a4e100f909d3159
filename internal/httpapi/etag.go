package httpapi

import "strings"

// MatchesETag compares the tags of a header If-None-Match with one weakly, as RFC 9110 defines for that header.
func MatchesETag(header, etag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.TrimPrefix(candidate, "W/") == strings.TrimPrefix(etag, "W/") {
			return true
		}
	}
	return false
}
