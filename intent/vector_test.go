package intent

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"repute"
)

// numbers draws what an embedder may return.
func numbers(t *rapid.T, dim int) []float32 {
	return rapid.SliceOfN(rapid.Float32Range(-100, 100), dim, dim).Draw(t, "numbers")
}

// cosine returns how close the directions of two vectors are.
func cosine(a, b []float32) float64 {
	var product, first, second float64
	for i := range a {
		product += float64(a[i]) * float64(b[i])
		first += float64(a[i]) * float64(a[i])
		second += float64(b[i]) * float64(b[i])
	}
	return product / math.Sqrt(first*second)
}

func TestVectorKeepsDirection(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := numbers(t, rapid.IntRange(1, 600).Draw(t, "dim"))
		v, err := NewVector("m", x)
		if err != nil {
			t.Fatal(err)
		}
		if err := v.check(); err != nil {
			t.Fatal(err)
		}
		back, length := make([]float32, len(x)), float64(0)
		for i, value := range v.Values {
			back[i] = v.Scale * float32(value)
			length += float64(x[i]) * float64(x[i])
		}
		if length > 1 && cosine(x, back) < .99 {
			t.Fatalf("cosine %v", cosine(x, back))
		}
	})
}

func TestVectorIsStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, err := NewVector(rapid.StringN(1, 60, 255).Draw(t, "model"),
			numbers(t, rapid.IntRange(1, 50).Draw(t, "dim")))
		if err != nil {
			t.Fatal(err)
		}
		b, err := v.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		var read Vector
		if err := read.UnmarshalBinary(b); err != nil {
			t.Fatal(err)
		}
		if read.Model != v.Model || read.Scale != v.Scale || string(asBytes(read.Values)) != string(asBytes(v.Values)) {
			t.Fatalf("%+v became %+v", v, read)
		}
	})
}

func asBytes(values []int8) []byte {
	b := make([]byte, len(values))
	for i, v := range values {
		b[i] = byte(v)
	}
	return b
}

func TestVectorRefuses(t *testing.T) {
	nan, infinite := float32(math.NaN()), float32(math.Inf(-1))
	for name, x := range map[string][]float32{"none": {}, "NaN": {1, nan}, "infinite": {infinite},
		"many": make([]float32, maxDim+1)} {
		if v, err := NewVector("m", x); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("%s: %v, %v", name, v, err)
		}
	}
	for _, model := range []string{"", string(make([]byte, 256))} {
		if _, err := (Vector{Model: model, Values: []int8{1}}).MarshalBinary(); !errors.Is(err, repute.ErrInvalid) {
			t.Errorf("a model of %d bytes: %v", len(model), err)
		}
	}
}

// TestVectorExtremes has numbers whose squares overflow, or vanish, in float32.
func TestVectorExtremes(t *testing.T) {
	for _, x := range []float32{math.MaxFloat32, math.SmallestNonzeroFloat32, -1e-30} {
		v, err := NewVector("m", []float32{x, x, 0})
		if err != nil || v.check() != nil || v.Values[0] != v.Values[1] || v.Values[0] == 0 {
			t.Errorf("%v: %+v, %v", x, v, err)
		}
	}
	zero, err := NewVector("m", make([]float32, 3))
	if err != nil || zero.check() != nil || zero.Scale != 0 {
		t.Errorf("zero: %+v, %v", zero, err)
	}
}

func FuzzVector(f *testing.F) {
	good, err := (Vector{Model: "m", Scale: 1, Values: []int8{1, 0}}).MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add(good[:3])
	f.Add([]byte{form, 255, 'm'})
	f.Add(append([]byte{form, 255}, make([]byte, 260)...)) // the longest model
	f.Fuzz(func(t *testing.T, b []byte) {
		var v Vector
		if v.UnmarshalBinary(b) != nil {
			return
		}
		again, err := v.MarshalBinary()
		if err != nil || string(again) != string(b) {
			t.Fatalf("%x became %x: %v", b, again, err)
		}
		if err := v.check(); err != nil {
			t.Fatal(err)
		}
	})
}
