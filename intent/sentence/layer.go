package sentence

import "math"

// levels is the largest quantized input. With int8 weights and at most 1536 inputs a sum is below
// 1536 * 127 * levels, which MUST be less than 2^31.
const levels = 8191

// lanes is how many tokens are multiplied at once, two in each 64-bit word.
const lanes = 8

// rows are rows of int8 values. Value v of row r stands for v * scales[r].
type rows struct {
	width  int
	scales []float32
	values string
}

// row returns the values of one row, as bytes that are to be read as int8.
func (r *rows) row(i int) string { return r.values[i*r.width : (i+1)*r.width] }

// layer is a matrix, with one row per output, and a bias.
type layer struct {
	rows
	bias []float32
}

// apply returns matrix * token + bias for each token. Tokens are consecutive in x.
func (l *layer) apply(x []float32) []float32 {
	tokens, outputs := len(x)/l.width, len(l.bias)
	out := make([]float32, tokens*outputs)
	packed := make([][lanes / 2]int64, l.width)
	for first := 0; first < tokens; first += lanes {
		count := min(lanes, tokens-first)
		scales := pack(packed, x[first*l.width:(first+count)*l.width], count)
		for o := range outputs {
			sums := l.sums(o, packed, count)
			for t := range count {
				sum := float32(lane(sums[t/2], t%2))
				scaled := float32(sum * float32(scales[t]*l.scales[o]))
				out[(first+t)*outputs+o] = scaled + l.bias[o]
			}
		}
	}
	return out
}

// pack quantizes count tokens and stores two of them in each word: the sum of one and of the other
// shifted by 32 bits. It returns the scale of each token.
func pack(packed [][lanes / 2]int64, x []float32, count int) (scales [lanes]float32) {
	clear(packed)
	width := len(packed)
	for t := range count {
		token := x[t*width : (t+1)*width]
		var most float32
		for _, v := range token {
			most = max(most, v, -v)
		}
		if most == 0 {
			continue
		}
		scales[t] = most / levels
		for i, v := range token {
			packed[i][t/2] += int64(math.RoundToEven(float64(v/scales[t]))) << (32 * (t % 2))
		}
	}
	return scales
}

// lane returns the sum in the low or the high half of a word.
func lane(word int64, high int) int32 {
	low := int32(word)
	if high == 0 {
		return low
	}
	return int32((word - int64(low)) >> 32) // a negative low half had borrowed from the high one
}

// sums returns the product of one row with packed tokens. One multiplication of a word serves two
// tokens, and reading a weight serves all of them.
func (l *layer) sums(o int, packed [][lanes / 2]int64, count int) (sums [lanes / 2]int64) {
	row := l.row(o)[:len(packed)]
	var a, b, c, d int64
	switch {
	case count > 4:
		for i := range packed {
			w, p := int64(int8(row[i])), &packed[i]
			a += w * p[0]
			b += w * p[1]
			c += w * p[2]
			d += w * p[3]
		}
	case count > 2:
		for i := range packed {
			w, p := int64(int8(row[i])), &packed[i]
			a += w * p[0]
			b += w * p[1]
		}
	default:
		for i := range packed {
			a += int64(int8(row[i])) * packed[i][0]
		}
	}
	return [lanes / 2]int64{a, b, c, d}
}

// normalization moves the mean of a token to 0 and its variance to 1, then scales and shifts each value.
type normalization struct{ scale, bias []float32 }

// apply returns the normalized tokens.
func (n *normalization) apply(x []float32) []float32 {
	const epsilon = 1e-6
	width := len(n.scale)
	out := make([]float32, len(x))
	for first := 0; first < len(x); first += width {
		token := x[first : first+width]
		var sum, squares float64
		for _, v := range token {
			sum += float64(v)
		}
		mean := float32(sum / float64(width))
		for _, v := range token {
			d := float64(v - mean)
			squares += float64(d * d)
		}
		inverse := float32(1 / math.Sqrt(squares/float64(width)+epsilon))
		for i, v := range token {
			out[first+i] = float32(float32(v-mean)*float32(inverse*n.scale[i])) + n.bias[i]
		}
	}
	return out
}
