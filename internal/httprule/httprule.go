// Package httprule has rules of HTTP (RFC 9110) that net/http leaves to its callers, so that all readers of a header
// or a URL agree on what it says. Two readers that disagree on a host are a way around a deny-list or a rate. Its
// inputs are untrusted: every function takes any text in bounded time, and has no error.
package httprule

import (
	"errors"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"
)

// longestName is the length in bytes of the longest text that may be a name: 253 characters of up to four bytes. The
// time that idna takes grows with the square of the length, to eight seconds for 90,000 bytes, and strangers choose
// names.
const longestName = 4 * 253

// Host returns a name as DNS has it: in ASCII and lower case, without the dot at the end (RFC 5890, RFC 3986 section
// 3.2.2), so that bücher.example, BÜCHER.example. and xn--bcher-kva.example are one host. A text that is no name, as an
// address, one with an underscore or one that is too long, is only brought to lower case.
func Host(name string) string {
	name = strings.TrimSuffix(name, ".")
	if len(name) <= longestName {
		if ascii, err := idna.Lookup.ToASCII(name); err == nil {
			name = ascii
		}
	}
	return strings.TrimSuffix(strings.ToLower(name), ".")
}

// Port returns the port of a URL, or that of its scheme: 80 of http, otherwise 443.
func Port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "http":
		return "80"
	}
	return "443"
}

// RetryAfter returns the pause that the header Retry-After asks for, as seconds or as a date; 0 for none, one that is
// over, and any other text. The sender decides how long it is: callers MUST bound it.
func RetryAfter(header string, now time.Time) time.Duration {
	header = strings.TrimSpace(header)
	seconds, err := strconv.ParseUint(header, 10, 31)
	if errors.Is(err, strconv.ErrRange) {
		seconds, err = math.MaxInt32, nil
	}
	if err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(header); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
