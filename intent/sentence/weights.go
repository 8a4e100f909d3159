package sentence

import (
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// weights is written by scripts/sentence/convert.mjs. It is a string because strings stay in the
// read-only pages of the program file.
//
//go:embed weights.bin
var weights string

const magic = "SENTENC1"

// errShort is returned for weights that end too early.
var errShort = errors.New("the weights end too early")

// section reads the weights in the order in which they were written. After the first error it
// returns zeros, so that one check at the end suffices.
type section struct {
	rest string
	err  error
}

// take returns the next n bytes, nil after an error.
func (s *section) take(n int) string {
	if s.err != nil || n > len(s.rest) {
		s.err = errShort
		return ""
	}
	head := s.rest[:n]
	s.rest = s.rest[n:]
	return head
}

// number returns the next 32-bit number.
func (s *section) number() uint32 {
	b := s.take(4)
	if s.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint32([]byte(b))
}

// floats returns the next n numbers.
func (s *section) floats(n int) []float32 {
	b := s.take(4 * n)
	if s.err != nil {
		return nil
	}
	out := make([]float32, n)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32([]byte(b[4*i : 4*i+4])))
	}
	return out
}

// rows returns count rows of width int8 values, each with its scale.
func (s *section) rows(count, width int) rows {
	return rows{width: width, scales: s.floats(count), values: s.take(count * width)}
}

// layer returns a matrix of inputs by outputs, and its bias.
func (s *section) layer(inputs, outputs int) layer {
	return layer{rows: s.rows(outputs, inputs), bias: s.floats(outputs)}
}

// norm returns the parameters of one normalization.
func (s *section) norm(width int) normalization {
	return normalization{scale: s.floats(width), bias: s.floats(width)}
}

// transformer returns one transformer whose input has the given width.
func (s *section) transformer(width int) transformer {
	return transformer{
		before: s.norm(width), attention: s.layer(width, 3*width), combined: s.layer(width, Dim),
		between: s.norm(Dim), wide: s.layer(Dim, hidden), narrow: s.layer(hidden, Dim),
	}
}

// vocabulary returns the pieces.
func (s *section) vocabulary() *vocabulary {
	v := &vocabulary{pieces: make(map[string]piece)}
	count := int(s.number())
	for id := 0; id < count && s.err == nil; id++ {
		length := s.take(1)
		if s.err != nil {
			break
		}
		text, score := s.take(int(length[0])), s.floats(1)
		if s.err == nil {
			v.add(text, id, float64(score[0]))
		}
	}
	return v
}

// parse returns the encoder that the weights describe.
func parse(data string) (*Encoder, error) {
	s := &section{rest: data}
	if head := s.take(len(magic)); head != magic {
		return nil, fmt.Errorf("the weights start with %q, not %q", head, magic)
	}
	e := &Encoder{words: s.vocabulary()}
	e.pieces = s.rows(len(e.words.lengths), narrow)
	e.positions = s.floats(maxPieces * narrow)
	e.residual = s.layer(narrow, Dim)
	e.first, e.second = s.transformer(narrow), s.transformer(Dim)
	e.last = s.layer(Dim, Dim)
	if s.err != nil {
		return nil, s.err
	}
	if len(s.rest) > 0 {
		return nil, fmt.Errorf("%d bytes follow the weights", len(s.rest))
	}
	return e, nil
}
