package sentence

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestLayer compares products of packed tokens with those in float64. The bound is what rounding
// the inputs to 14 bits costs.
func TestLayer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		inputs, outputs := rapid.IntRange(1, 40).Draw(t, "inputs"), rapid.IntRange(1, 5).Draw(t, "outputs")
		tokens := rapid.IntRange(1, 19).Draw(t, "tokens")
		values := rapid.SliceOfN(rapid.Byte(), inputs*outputs, inputs*outputs).Draw(t, "weights")
		x := rapid.SliceOfN(rapid.Float32Range(-10, 10), tokens*inputs, tokens*inputs).Draw(t, "x")
		l := layer{rows{inputs, make([]float32, outputs), string(values)}, make([]float32, outputs)}
		for o := range outputs {
			l.scales[o], l.bias[o] = 1, float32(o)
		}
		for at, got := range l.apply(x) {
			token, o := at/outputs, at%outputs
			want, most := float64(o), 0.0
			for i := range inputs {
				want += float64(int8(values[o*inputs+i])) * float64(x[token*inputs+i])
				most = max(most, math.Abs(float64(x[token*inputs+i])))
			}
			if bound := .01 + most/levels*128*float64(inputs); math.Abs(float64(got)-want) > bound {
				t.Fatalf("token %d, output %d: %v instead of %v", token, o, got, want)
			}
		}
	})
}

// TestLayerExtremes has the largest sums that can occur: they MUST fit in 32 bits.
func TestLayerExtremes(t *testing.T) {
	for _, sign := range []float32{1, -1} {
		x := make([]float32, lanes*hidden)
		for i := range x {
			x[i] = sign
			if i/hidden%2 == 1 {
				x[i] = -sign
			}
		}
		l := layer{rows{hidden, []float32{1}, strings.Repeat("\x81", hidden)}, []float32{0}} // all -127
		for token, got := range l.apply(x) {
			want := -127 * hidden * float64(x[token*hidden])
			if math.Abs(float64(got)/want-1) > 1e-6 {
				t.Errorf("token %d: %v instead of %v", token, got, want)
			}
		}
	}
}

func TestExp(t *testing.T) {
	for x := 0.0; x > -650; x -= .37 {
		if got, want := exp(x), math.Exp(x); math.Abs(got/want-1) > 1e-14 {
			t.Errorf("exp(%v) = %v instead of %v", x, got, want)
		}
	}
	if exp(0) != 1 || exp(-1e9) != 0 || exp(math.Inf(-1)) != 0 {
		t.Errorf("exp(0) = %v, exp(-1e9) = %v", exp(0), exp(-1e9))
	}
	for x := float32(-20); x < 20; x += .13 {
		if got, want := float64(tanh(x)), math.Tanh(float64(x)); math.Abs(got-want) > 1e-7 {
			t.Errorf("tanh(%v) = %v instead of %v", x, got, want)
		}
	}
}

// TestParse cuts and changes the weights: none is an encoder, none panics.
func TestParse(t *testing.T) {
	for _, length := range []int{0, 4, 8, 10, 12, 13, 100, 100_000, 3_000_000, len(weights) - 1} {
		if _, err := parse(weights[:length]); err == nil {
			t.Errorf("%d bytes are an encoder", length)
		}
	}
	if _, err := parse(weights + "x"); err == nil {
		t.Error("more bytes are an encoder")
	}
	if _, err := parse(magic + "\xff\xff\xff\xff" + strings.Repeat("\x00", 1000)); !errors.Is(err, errShort) {
		t.Errorf("four billion pieces: %v", err)
	}
}

func TestEmptyAndLong(t *testing.T) {
	e := encoder(t)
	for _, text := range []string{"", " \n\t", "\x00\x01", "\u2028"} {
		for _, v := range embed(t, e, text) {
			if v != 0 {
				t.Fatalf("%q has vector value %v", text, v)
			}
		}
	}
	long := strings.Repeat("pay the invoice ", 1000)
	if n := len(e.words.split(long)); n != maxPieces {
		t.Errorf("%d pieces", n)
	}
	spaced, plain := embed(t, e, "  pay \x00\n the\tinvoice "), embed(t, e, "pay the invoice")
	for i := range plain {
		if spaced[i] != plain[i] {
			t.Fatalf("spaces change value %d", i)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Embed(ctx, []string{"a"}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestHuge splits texts of 10 MB, of which only the head may be read.
func TestHuge(t *testing.T) {
	e := encoder(t)
	for _, part := range []string{"a", "pay ", "\xff", "\U0001F600", "\ufdfa", "\u0301", "▁", "\u1100\u1161", "a\x00"} {
		text := strings.Repeat(part, 10<<20/len(part))
		if ids, first := e.words.split(text), e.words.split(text[:8<<10]); !slices.Equal(ids, first) ||
			len(ids) > maxPieces {
			t.Errorf("%q: %d pieces, of the head %d", part, len(ids), len(first))
		}
	}
}

// FuzzEmbed splits any text, and embeds its first pieces: more would only take longer.
func FuzzEmbed(f *testing.F) {
	for _, text := range []string{"", "pay", "\x00", "a\xed\xa0\x80", "a" + strings.Repeat("\u0301", 300),
		"日本語", "\U0001F600"} {
		f.Add(text)
	}
	e := encoder(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := e.words.split(text)
		if len(ids) > maxPieces {
			t.Fatalf("%d pieces", len(ids))
		}
		var squares float64
		for _, v := range e.vector(ids[:min(len(ids), 2)]) {
			squares += float64(v) * float64(v)
		}
		if want := min(len(ids), 1); math.Abs(squares-float64(want)) > 1e-4 {
			t.Fatalf("the square of the length is %v", squares)
		}
	})
}
