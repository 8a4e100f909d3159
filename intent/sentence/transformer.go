package sentence

import "math"

const (
	heads  = 4
	hidden = 1536 // width between the two layers of a transformer's second half
)

// transformer lets each token read all others, then processes each token by itself.
type transformer struct {
	before    normalization
	attention layer // queries, keys and values of all heads
	combined  layer
	between   normalization
	wide      layer
	narrow    layer
}

// apply returns the tokens after the transformer. residual is what its first half is added to.
func (t *transformer) apply(x, residual []float32) []float32 {
	mixed := t.combined.apply(attend(t.attention.apply(t.before.apply(x)), t.combined.width))
	add(mixed, residual)
	wide := t.wide.apply(t.between.apply(mixed))
	for i, v := range wide {
		wide[i] = max(v, 0)
	}
	out := t.narrow.apply(wide)
	add(out, mixed)
	return out
}

// add adds b to a.
func add(a, b []float32) {
	for i, v := range b {
		a[i] += v
	}
}

// attend returns for each token the mean of all values, weighted by how well their keys fit the
// token's query. A token in qkv is its query, key and value, each of the given width.
func attend(qkv []float32, width int) []float32 {
	tokens, size := len(qkv)/(3*width), width/heads
	out := make([]float32, tokens*width)
	scale := float32(1 / math.Sqrt(float64(size)))
	weights := make([]float32, tokens)
	for h := range heads {
		part := func(token, kind int) []float32 { // 0 query, 1 key, 2 value
			at := token*3*width + kind*width + h*size
			return qkv[at : at+size]
		}
		for i := range tokens {
			for j := range weights {
				weights[j] = float32(dot(part(i, 0), part(j, 1)) * scale)
			}
			softmax(weights)
			mean := out[i*width+h*size:][:size]
			for j, w := range weights {
				for k, v := range part(j, 2) {
					mean[k] += float32(w * v)
				}
			}
		}
	}
	return out
}

// dot returns the product of two vectors whose length is a multiple of 4.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	var s0, s1, s2, s3 float32
	for i := 0; i+3 < len(a); i += 4 {
		s0 += float32(a[i] * b[i])
		s1 += float32(a[i+1] * b[i+1])
		s2 += float32(a[i+2] * b[i+2])
		s3 += float32(a[i+3] * b[i+3])
	}
	return (s0 + s1) + (s2 + s3)
}

// softmax replaces each value by its exponential, divided by the sum of all.
func softmax(x []float32) {
	most := x[0]
	for _, v := range x {
		most = max(most, v)
	}
	var sum float64
	for i, v := range x {
		e := exp(float64(v - most))
		x[i] = float32(e)
		sum += e
	}
	for i, v := range x {
		x[i] = float32(float64(v) / sum)
	}
}

// exp returns e^x for x <= 0. The one of package math rounds differently on some processors.
func exp(x float64) float64 {
	const (
		least   = -700 // smaller results are 0 in float32
		high    = 6.93147180369123816490e-01
		low     = 1.90821492927058770002e-10 // high + low = ln 2
		degrees = 13                         // of the Taylor polynomial: its error is below 1e-16
	)
	if x < least {
		return 0
	}
	power := math.Floor(float64(x*math.Log2E) + 0.5)
	r := x - float64(power*high)
	r -= float64(power * low)
	sum := 1.0
	for n := degrees; n > 0; n-- {
		sum = 1 + float64(sum*r)/float64(n)
	}
	return sum * math.Float64frombits(uint64(int64(power)+1023)<<52)
}

// tanh returns the hyperbolic tangent.
func tanh(x float32) float32 {
	e := exp(-2 * math.Abs(float64(x)))
	return float32(math.Copysign((1-e)/(1+e), float64(x)))
}
