package intent

import (
	"context"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Kind says what an item is.
type Kind string

// The kinds of items that are indexed.
const (
	KindIntent Kind = "intent" // of an agent.json
	KindSkill  Kind = "skill"  // of an A2A agent card
	KindTool   Kind = "tool"   // of an MCP server
	KindClass  Kind = "class"  // of OASF
)

// Authors of items choose how long their texts are, so only their heads are read.
const (
	maxName        = 200     // bytes
	maxDescription = 4 << 10 // bytes
	maxParameters  = 64
	maxParameter   = 100 // bytes
	maxExamples    = 8   // each has a vector of its own
	maxExample     = 500 // bytes
	maxQuery       = 4 << 10
)

// Item is one offer. Texts of any size and content are allowed; only their first bytes are read.
type Item struct {
	ID          string   // unique in an Index, chosen by the caller
	Kind        Kind     // one of the constants
	Name        string   // as written, e.g. "book_flight" or "getWeather"
	Description string   // "" for none
	Parameters  []string // names of parameters, and tags
	Examples    []string // what callers may say; each has a vector, and the closest counts
}

// texts returns what is embedded: name and description as one text, then each example. The result is never empty; the
// text of an item without name and description is "".
func (i Item) texts() []string {
	name, description := spaced(clean(i.Name, maxName)), clean(i.Description, maxDescription)
	if name != "" && description != "" {
		name += ". "
	}
	texts := []string{sentence(name + description)}
	for _, example := range i.Examples[:min(len(i.Examples), maxExamples)] {
		if example = clean(example, maxExample); example != "" {
			texts = append(texts, sentence(example))
		}
	}
	return texts
}

// words returns the words that BM25 compares. Those of the name count twice.
func (i Item) words() []string {
	name := spaced(clean(i.Name, maxName))
	parts := []string{name, name, clean(i.Description, maxDescription)}
	for _, parameter := range i.Parameters[:min(len(i.Parameters), maxParameters)] {
		parts = append(parts, spaced(clean(parameter, maxParameter)))
	}
	for _, example := range i.Examples[:min(len(i.Examples), maxExamples)] {
		parts = append(parts, clean(example, maxExample))
	}
	return stems(strings.Join(parts, " "))
}

// Embedder turns texts into vectors. Embed returns one vector of Dim numbers per text, in order.
// ID names the model and MUST change when its vectors do: vectors are only compared to vectors of
// the same ID. An Embedder is used concurrently.
type Embedder interface {
	Embed(ctx context.Context, texts []string) ([][]float32, error)
	Dim() int
	ID() string
}

// batch is how many texts are embedded at once.
const batch = 64

// Vectors returns the vectors of each item: that of its name and description, then one for each
// example. The embedder is called with batches over the boundaries of items. An error is for all of them.
func Vectors(ctx context.Context, e Embedder, items ...Item) ([][]Vector, error) {
	var texts []string
	counts := make([]int, len(items))
	for i, item := range items {
		own := item.texts()
		texts, counts[i] = append(texts, own...), len(own)
	}
	all, err := embed(ctx, e, texts)
	if err != nil {
		return nil, err
	}
	vectors := make([][]Vector, len(items))
	for i, n := range counts {
		vectors[i], all = all[:n:n], all[n:]
	}
	return vectors, nil
}

// embed returns the vectors of texts, and an error if the embedder breaks its contract.
func embed(ctx context.Context, e Embedder, texts []string) ([]Vector, error) {
	vectors := make([]Vector, 0, len(texts))
	for len(texts) > 0 {
		n := min(batch, len(texts))
		values, err := e.Embed(ctx, texts[:n])
		if err != nil {
			return nil, fmt.Errorf("embed with %s: %w", e.ID(), err)
		}
		if len(values) != n {
			return nil, fmt.Errorf("embed with %s: %d vectors for %d texts", e.ID(), len(values), n)
		}
		for _, x := range values {
			v, err := NewVector(e.ID(), x)
			if err != nil {
				return nil, fmt.Errorf("embed with %s: %w", e.ID(), err)
			}
			if len(x) != e.Dim() {
				return nil, fmt.Errorf("embed with %s: %d dimensions instead of %d", e.ID(), len(x), e.Dim())
			}
			vectors = append(vectors, v)
		}
		texts = texts[n:]
	}
	return vectors, nil
}

// sentence returns a text with a capital first letter. Models are trained on sentences: without it,
// the tests found twice as many wrong matches that were sure.
func sentence(text string) string {
	r, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	return string(unicode.ToUpper(r)) + text[size:]
}

// clean returns the first bytes of a text as valid UTF-8, normalized and with single spaces. The
// text is cut before it is read, and once more because some characters have long normal forms. Control characters count
// as spaces.
func clean(text string, bytes int) string {
	text = norm.NFKC.String(strings.ToValidUTF8(head(text, bytes), " "))
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	return strings.TrimSuffix(head(text, bytes), " ")
}

// head returns at most the first bytes of a text, without a partial character at the end.
func head(text string, bytes int) string {
	if len(text) <= bytes {
		return text
	}
	for bytes > 0 && !utf8.RuneStart(text[bytes]) {
		bytes--
	}
	return text[:bytes]
}
