package sentence

import (
	"bufio"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
)

// reference is a line of testdata/golden.jsonl: what the reference implementation computes.
type reference struct {
	Text   string `json:"text"`
	Pieces []int  `json:"pieces"`
	Vector []byte `json:"vector"`
}

// values returns the vector as numbers.
func (r reference) values() []float64 {
	out := make([]float64, len(r.Vector)/2)
	for i := range out {
		out[i] = float64(int16(binary.LittleEndian.Uint16(r.Vector[2*i:]))) / 32767
	}
	return out
}

func references(t testing.TB) []reference {
	t.Helper()
	f, err := os.Open("testdata/golden.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []reference
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r reference
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		if len(r.Vector) != 2*Dim {
			t.Fatalf("%q: %s", r.Text, base64.StdEncoding.EncodeToString(r.Vector))
		}
		out = append(out, r)
	}
	if len(out) < 136 || lines.Err() != nil {
		t.Fatalf("%d references: %v", len(out), lines.Err())
	}
	return out
}

func encoder(t testing.TB) *Encoder {
	t.Helper()
	e, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func embed(t testing.TB, e *Encoder, text string) []float32 {
	t.Helper()
	vectors, err := e.Embed(t.Context(), []string{text})
	if err != nil {
		t.Fatal(err)
	}
	return vectors[0]
}

func TestPieces(t *testing.T) {
	e := encoder(t)
	for _, r := range references(t) {
		if got := e.words.split(r.Text); !slices.Equal(got, r.Pieces) {
			t.Errorf("%q: pieces %v, the reference has %v", r.Text, got, r.Pieces)
		}
	}
}

// TestReference compares vectors of int8 weights to those of the original weights.
func TestReference(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long")
	}
	e := encoder(t)
	least := 1.0
	for _, r := range references(t) {
		var product, length float64
		got := embed(t, e, r.Text)
		for i, v := range r.values() {
			product += v * float64(got[i])
			length += float64(got[i]) * float64(got[i])
		}
		if math.Abs(length-1) > 1e-5 {
			t.Errorf("%q: the square of the length is %v", r.Text, length)
		}
		if product < .998 {
			t.Errorf("%q: cosine to the reference %.5f", r.Text, product)
		}
		least = min(least, product)
	}
	t.Logf("least cosine %.5f", least)
}

// TestDigest pins every bit of the vectors. `make test-arm64` runs it on another processor.
func TestDigest(t *testing.T) {
	if testing.Short() {
		t.Skip("computes for long")
	}
	const golden = "5a220f7d304b9f3d4b64c2e438e6a456176b3944b1ff8788b7a85fb677bf59af"
	e := encoder(t)
	sum := sha256.New()
	for _, r := range references(t) {
		if err := binary.Write(sum, binary.LittleEndian, embed(t, e, r.Text)); err != nil {
			t.Fatal(err)
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != golden {
		t.Errorf("vectors have digest %s; if that is intended, Model must change too", got)
	}
}

func BenchmarkEmbed(b *testing.B) {
	e := encoder(b)
	for name, text := range map[string]string{
		"query": "get me a plane ticket to Berlin", "longest": strings.Repeat("a plane ticket ", 50),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportMetric(float64(len(e.words.split(text))), "pieces")
			for b.Loop() {
				embed(b, e, text)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		encoder(b)
	}
}
