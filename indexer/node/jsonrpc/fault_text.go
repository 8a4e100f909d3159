package jsonrpc

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// refusalText is the text of a refusal: the data first, which is often more specific than the message.
type refusalText struct {
	data    []string
	message string
	blocks  uint64 // a cap or a range in data
	retry   time.Duration
}

// read collects texts from error data: a text, a list of members, and texts in their members.
func (w *refusalText) read(data any) { w.walk("", data, 3) }

// walk collects hints from the data of an error: texts, a pause before the next try, and the
// number of blocks that the node would accept.
func (w *refusalText) walk(name string, v any, depth int) {
	switch v := v.(type) {
	case string:
		if len(w.data) < maxTexts {
			w.data = append(w.data, v)
		}
	case float64:
		switch name = strings.ToLower(name); {
		case v < 1 || v > 1e12:
		case strings.Contains(name, "backoff"), strings.Contains(name, "retry"):
			w.retry = time.Duration(min(v, maxBackoff) * float64(time.Second))
		case strings.Contains(name, "range"), strings.Contains(name, "block"):
			w.lower(uint64(v))
		}
	case map[string]any:
		from, ok := quantityOf(v["from"])
		to, ok2 := quantityOf(v["to"])
		if ok && ok2 && from <= to {
			w.lower(to - from + 1)
			return
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if depth > 0 {
				w.walk(name, v[name], depth-1)
			}
		}
	}
}

// maxBackoff is the largest pause in seconds that an endpoint may ask for; larger numbers are
// ignored.
const maxBackoff = 1e6

// quantityOf returns a number that is given as a decimal or hexadecimal string.
func quantityOf(v any) (uint64, bool) {
	s, ok := v.(string)
	n, err := strconv.ParseUint(s, 0, 63)
	return n, ok && err == nil
}

// lower records a limit on blocks; the lowest one counts.
func (w *refusalText) lower(n uint64) {
	if n > 0 && (w.blocks == 0 || n < w.blocks) {
		w.blocks = n
	}
}

// signs returns the fault that a text in lower case means, in the order of the tests. It returns
// false for a text that none of them recognizes, which counts as FaultRange.
func signs(s string) (Fault, bool) {
	for _, class := range []struct {
		fault Fault
		words []string
	}{
		{FaultBehind, []string{"beyond current head", "after last accepted block", "block is out of range",
			"could not be found",
			"header not found", "unknown block", "block not found", "unfinalized data", "not currently canonical"}},
		{FaultNoMethod, []string{"method not found", "does not exist/is not available", "method not supported",
			"unsupported method",
			"method is not supported", "not whitelisted", "specify an address in your request",
			"exceed max addresses or topics", "exceed max topics"}},
		{FaultPruned, []string{"pruned", "pruning", "archive", "missing trie node", "history unavailable",
			"historical state",
			"not available (requested height", "data before txnum"}},
		{FaultRate, []string{"rate limit", "rate-limit", "ratelimit", "too many requests", "compute unit",
			"credits limited",
			"request rate", "request count", "throttl", "quota", "per second", "slow down"}},
		{FaultAuth, []string{"unauthorized", "unauthorised", "forbidden", "access denied", "invalid api key",
			"missing api key",
			"api key required", "invalid project id", "must be authenticated", "authentication"}},
	} {
		if slices.ContainsFunc(class.words, func(word string) bool { return strings.Contains(s, word) }) {
			return class.fault, true
		}
	}
	// A node that answers this to eth_getLogs for one block does not support the method at all.
	if strings.TrimRight(strings.TrimSpace(s), ".") == "limit exceeded" {
		return FaultNoMethod, true
	}
	return FaultRange, false
}

// Bounds of what is searched for the meaning of a refusal. One says it at the beginning, and a hostile endpoint may
// send megabytes, which every reader of the error would search again.
const (
	maxTexts   = 32      // texts in the data
	maxScanned = 4 << 10 // bytes of each text
)

// texts returns the beginnings of the texts, the data first.
func (w *refusalText) texts() []string {
	texts := append(slices.Clone(w.data), w.message)
	for i, text := range texts {
		texts[i] = text[:min(len(text), maxScanned)]
	}
	return texts
}

// fault classifies; known is false where no sign was found.
func (w *refusalText) fault() (f Fault, known bool) {
	for _, text := range w.texts() {
		if f, known = signs(strings.ToLower(text)); known {
			return f, true
		}
	}
	return FaultRange, false
}

// diagnosis adds the numbers in the text to a fault.
func (w *refusalText) diagnosis(f Fault) Diagnosis {
	v := Diagnosis{Fault: f, RetryAfter: w.retry}
	if f != FaultRange {
		return v
	}
	for _, text := range w.texts() {
		w.lower(blocksIn(text))
	}
	v.Blocks = w.blocks
	return v
}

// Patterns of numbers in refusals, and of texts that only look like one.
const (
	noise   = `https?://\S+|eth_getlogs|getlogs|-\d+`
	pairs   = `\[\s*(0x[0-9a-f]+)\s*,\s*(0x[0-9a-f]+)\s*\]|\brange\s+(\d+)\s*-\s*(\d+)`
	numbers = `\b(\d{1,3}(?:,\d{3})+|\d+)(k?)\b`
	density = `\blogs?\b|\bresults?\b|\bsize\b|\bbytes\b|\btime`
)

// blocksIn returns how many blocks a refusal seems to allow, 0 for unknown: the length of a
// suggested range, or else the smallest number in the text, because the requested number is larger
// than the allowed one. Numbers count in sentences about blocks or ranges, not in those about
// results.
func blocksIn(text string) uint64 {
	text = strings.ToLower(text)
	least := uint64(0)
	lower := func(n uint64) {
		if n > 0 && (least == 0 || n < least) {
			least = n
		}
	}
	for _, m := range regexp.MustCompile(pairs).FindAllStringSubmatch(text, -1) {
		from, err := strconv.ParseUint(cmp.Or(m[1], m[3]), 0, 63)
		to, err2 := strconv.ParseUint(cmp.Or(m[2], m[4]), 0, 63)
		if err == nil && err2 == nil && from <= to {
			lower(to - from + 1)
		}
	}
	plain := regexp.MustCompile(pairs+"|"+noise).ReplaceAllString(text, " ")
	about := strings.Contains(plain, "block") || strings.Contains(plain, "range")
	if !about || regexp.MustCompile(density).MatchString(plain) {
		return least
	}
	for _, m := range regexp.MustCompile(numbers).FindAllStringSubmatch(plain, -1) {
		n, err := strconv.ParseUint(strings.ReplaceAll(m[1], ",", ""), 10, 40)
		if m[2] != "" {
			n *= 1_000
		}
		if err == nil {
			lower(n)
		}
	}
	return least
}

// IsDoubtful reports whether a text is the refusal that proxies send for ranges too large as well
// as in outages.
func IsDoubtful(text string) bool {
	return strings.Contains(strings.ToLower(text), "no backend is currently healthy")
}
