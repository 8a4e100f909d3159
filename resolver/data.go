package resolver

import (
	"bytes"
	"encoding/base64"
	"strings"
)

// dataHeader is the part of a data: URI before the comma.
type dataHeader struct {
	mediaType string
	base64    bool
	encoding  string // value of enc=, lower case
}

// decodeData reads a data: URI (RFC 2397 and the forms found on chain).
func decodeData(uri string, limit int64) ([]byte, string, error) {
	// Base64 and percent-encoding only shrink, except by the header.
	head, body, ok := strings.Cut(uri[len("data:"):], ",")
	if !ok {
		return nil, "", final(ReasonBadDataURI, "no comma")
	}
	if int64(len(body)) > 3*limit+1024 {
		return nil, "", final(ReasonTooLarge, "%d characters", len(body))
	}
	h := parseDataHeader(head)
	raw, err := decodeBody(h, body)
	if err == nil {
		raw, err = inflateData(h, raw, limit)
	}
	if err != nil {
		return nil, "", err
	}
	switch n := int64(len(raw)); {
	case n == 0:
		return nil, "", final(ReasonBadDataURI, "no data")
	case n > limit:
		return nil, "", final(ReasonTooLarge, "%d bytes, limit %d", n, limit)
	}
	return raw, h.mediaType, nil
}

// parseDataHeader parses media type, base64 and ERC-8004's enc of a data: URI.
func parseDataHeader(head string) dataHeader {
	var h dataHeader
	for i, part := range strings.Split(head, ";") {
		part = strings.ToLower(strings.TrimSpace(part))
		switch {
		case part == "base64":
			h.base64 = true
		case strings.HasPrefix(part, "enc="):
			h.encoding = part[len("enc="):]
		case i == 0 && strings.Contains(part, "/"):
			h.mediaType = part
		}
	}
	return h
}

// decodeBody undoes the text encoding. Writers put plain JSON behind a base64
// header, and no base64 starts with a brace, so the body decides.
func decodeBody(h dataHeader, body string) ([]byte, error) {
	if !h.base64 {
		return unpercent(body), nil
	}
	plain := unpercent(body)
	if looksJSON(plain) {
		return plain, nil
	}
	raw, err := decodeBase64(plain)
	if err != nil {
		return nil, final(ReasonBadBase64, "%w", err)
	}
	return raw, nil
}

// decodeBase64 accepts both alphabets, with or without padding and with blanks.
func decodeBase64(text []byte) ([]byte, error) {
	clean := bytes.Map(func(r rune) rune {
		switch r {
		case ' ', '\t', '\r', '\n', '\f', '\v':
			return -1
		case '-':
			return '+'
		case '_':
			return '/'
		}
		return r
	}, text)
	clean = bytes.TrimRight(clean, "=")
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(clean)))
	n, err := base64.RawStdEncoding.Decode(out, clean)
	return out[:n], err
}

// unpercent decodes %XX and keeps every other percent sign, because unescaped JSON after the comma
// may contain "100%".
func unpercent(s string) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			hi, ok1 := unhex(s[i+1])
			lo, ok2 := unhex(s[i+2])
			if ok1 && ok2 {
				out = append(out, hi<<4|lo)
				i += 2
				continue
			}
		}
		out = append(out, s[i])
	}
	return out
}

// unhex returns the value of a hexadecimal digit.
func unhex(c byte) (byte, bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}

// inflateData undoes enc=. Gzip is recognized by its magic number too, because no
// JSON document can start with it.
func inflateData(h dataHeader, raw []byte, limit int64) ([]byte, error) {
	switch {
	case h.encoding == "" && !isGzip(raw), h.encoding == "identity":
		return raw, nil
	case h.encoding == "" || h.encoding == "gzip":
		if looksJSON(raw) {
			return raw, nil
		}
		return inflate(bytes.NewReader(raw), limit)
	}
	return nil, final(ReasonUnsupportedEncoding, "enc=%.32q", h.encoding)
}

// looksJSON reports whether bytes begin as a JSON object or array does.
func looksJSON(b []byte) bool {
	b = bytes.TrimLeft(b, " \t\r\n\ufeff")
	return len(b) > 0 && (b[0] == '{' || b[0] == '[')
}

// Inline returns the document that a URI contains: that of a data: URI, or JSON in place of a URI.
// It returns an *Error for every other form, and for more than limit bytes.
func Inline(uri string, limit int64) ([]byte, error) {
	switch ref := Classify(uri); {
	case ref.Kind == KindData:
		b, _, err := decodeData(ref.URL, limit)
		return b, err
	case ref.Kind == KindJSON && int64(len(ref.URL)) <= limit:
		return []byte(ref.URL), nil
	default:
		return nil, final(ReasonUnsupportedScheme, "%s has to be fetched", ref.Kind)
	}
}
