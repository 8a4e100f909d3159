package sentence

import (
	"context"
	"fmt"
	"math"
)

const (
	// Dim is the number of dimensions of a vector.
	Dim = 512
	// Model names the model. It MUST change with the bits of any vector, since vectors of
	// different models cannot be compared.
	Model = "universal-sentence-encoder-lite/int8/1"

	narrow = 256 // width of a piece before the first transformer
)

// Encoder computes vectors. It is immutable and may be used concurrently.
type Encoder struct {
	words         *vocabulary
	pieces        rows
	positions     []float32 // what is added to a piece, by its position
	residual      layer
	first, second transformer
	last          layer
}

// New returns an encoder with the weights that are part of the program.
func New() (*Encoder, error) {
	e, err := parse(weights)
	if err != nil {
		return nil, fmt.Errorf("sentence: %w", err)
	}
	return e, nil
}

// Dim returns the number of dimensions of a vector.
func (e *Encoder) Dim() int { return Dim }

// ID returns Model.
func (e *Encoder) ID() string { return Model }

// Embed returns one vector of length 1 for each text. Of a text at most the first 128 pieces are
// read, about 100 words. The vector of a text without visible characters is zero. The only error
// is that of ctx.
func (e *Encoder) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	vectors := make([][]float32, len(texts))
	for i, text := range texts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		vectors[i] = e.vector(e.words.split(text))
	}
	return vectors, nil
}

// vector returns the vector of a sequence of pieces.
func (e *Encoder) vector(ids []int) []float32 {
	if len(ids) == 0 {
		return make([]float32, Dim)
	}
	x := e.lookup(ids)
	x = e.first.apply(x, e.residual.apply(x))
	x = e.second.apply(x, x)
	out := e.last.apply(mean(x, len(ids)))
	var squares float64
	for i, v := range out {
		out[i] = tanh(v)
		squares += float64(float64(out[i]) * float64(out[i]))
	}
	length := float32(math.Sqrt(max(squares, 1e-12)))
	for i := range out {
		out[i] /= length
	}
	return out
}

// lookup returns the first input of each piece. The model adds a piece twice, once with its
// position.
func (e *Encoder) lookup(ids []int) []float32 {
	x := make([]float32, len(ids)*narrow)
	for i, id := range ids {
		row, scale := e.pieces.row(id), 2*e.pieces.scales[id]
		for k := range narrow {
			x[i*narrow+k] = float32(float32(int8(row[k]))*scale) + e.positions[i*narrow+k]
		}
	}
	return x
}

// mean returns the mean of the tokens.
func mean(x []float32, tokens int) []float32 {
	out := make([]float32, len(x)/tokens)
	for first := 0; first < len(x); first += len(out) {
		add(out, x[first:first+len(out)])
	}
	for i := range out {
		out[i] /= float32(tokens)
	}
	return out
}
