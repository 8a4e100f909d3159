package intent

import (
	"encoding/binary"
	"fmt"
	"math"

	"repute"
)

const (
	// maxDim bounds the dimensions of a vector. Sums of products of so many bytes fit in 32 bits.
	maxDim = 4096
	// form is the first byte of a stored vector. It changes with the layout.
	form = 1
)

// Vector is a vector of length 1, or zero, whose value i is Values[i] * Scale.
type Vector struct {
	Model  string  // ID of the Embedder
	Scale  float32 // 0 for the zero vector
	Values []int8
}

// NewVector returns the direction of x, quantized. The largest value becomes 127 or -127, and Scale makes the quantized
// vector one of length 1 again.
func NewVector(model string, x []float32) (Vector, error) {
	if len(x) == 0 || len(x) > maxDim {
		return Vector{}, repute.Invalid("vector", fmt.Sprintf("has %d dimensions", len(x)), "1 to 4096 are allowed")
	}
	var most, squares float64
	for i, v := range x {
		value := float64(v)
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return Vector{}, repute.Invalid("vector", fmt.Sprintf("value %d is %v", i, v), "use finite numbers")
		}
		most = max(most, math.Abs(value))
		squares += float64(value * value)
	}
	v := Vector{Model: model, Values: make([]int8, len(x))}
	if most == 0 {
		return v, nil
	}
	for i, value := range x {
		v.Values[i] = int8(math.RoundToEven(float64(value) / most * 127))
	}
	v.Scale = float32(1 / v.norm())
	return v, nil
}

// norm returns the Euclidean norm of the quantized values.
func (v Vector) norm() float64 {
	sum := 0
	for _, value := range v.Values {
		sum += int(value) * int(value)
	}
	return math.Sqrt(float64(sum))
}

// MarshalBinary returns the bytes to store: a form, the model, the scale and the values.
func (v Vector) MarshalBinary() ([]byte, error) {
	if len(v.Model) == 0 || len(v.Model) > math.MaxUint8 {
		return nil, repute.Invalid("model", fmt.Sprintf("has %d bytes", len(v.Model)), "1 to 255 are allowed")
	}
	b := append([]byte{form, byte(len(v.Model))}, v.Model...)
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v.Scale))
	for _, value := range v.Values {
		b = append(b, byte(value))
	}
	return b, nil
}

// UnmarshalBinary reads what MarshalBinary returned. Bytes of another form, cut bytes and vectors
// whose length is not 1 are refused.
func (v *Vector) UnmarshalBinary(b []byte) error {
	if len(b) < 2 || b[0] != form || b[1] == 0 || len(b) < 2+int(b[1])+4+1 {
		return repute.Invalid("vector", "is not a stored vector", "compute it again")
	}
	model, rest := b[2:2+int(b[1])], b[2+int(b[1]):]
	read := Vector{Model: string(model), Scale: math.Float32frombits(binary.LittleEndian.Uint32(rest))}
	if rest = rest[4:]; len(rest) > maxDim {
		return repute.Invalid("vector", fmt.Sprintf("has %d dimensions", len(rest)), "1 to 4096 are allowed")
	}
	read.Values = make([]int8, len(rest))
	for i, value := range rest {
		read.Values[i] = int8(value)
	}
	if err := read.check(); err != nil {
		return err
	}
	*v = read
	return nil
}

// check returns an error unless the vector has length 1 or is zero. Another length would give it a
// wrong rank.
func (v Vector) check() error {
	length := float64(v.Scale) * v.norm()
	if length == 0 && v.Scale == 0 || math.Abs(length-1) < 1e-3 {
		return nil
	}
	return repute.Invalid("vector", fmt.Sprintf("has length %v", length), "compute it again")
}
