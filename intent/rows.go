package intent

// perBlock is how many vectors a block holds: one in each byte of a word.
const perBlock = 8

// pair selects every fourth byte of a word, so that two vectors are multiplied at once: byte values
// times a byte, summed over 4096 dimensions, fit in the 32 bits of each.
const pair = 0x000000ff_000000ff

// rows holds vectors in blocks of eight. Word i of a block has value i of each, plus 128 so that no
// byte is negative. A free row keeps its old values, which nobody reads.
type rows struct {
	dim    int
	blocks [][]uint64
	scales []float32
	owners []int32 // the slot of each row, none if the row is free
	free   []int32
}

const none = -1

// put stores a vector of a slot and returns its row.
func (r *rows) put(slot int32, v Vector) int32 {
	if len(r.free) == 0 {
		r.grow()
	}
	row := r.free[len(r.free)-1]
	r.free = r.free[:len(r.free)-1]
	block, shift := r.blocks[row/perBlock], 8*(row%perBlock)
	for i, value := range v.Values {
		block[i] = block[i]&^(0xff<<shift) | uint64(uint8(value)^0x80)<<shift
	}
	r.scales[row], r.owners[row] = v.Scale, slot
	return row
}

// grow adds a block of free rows.
func (r *rows) grow() {
	first := int32(len(r.owners))
	r.blocks = append(r.blocks, make([]uint64, r.dim))
	for row := first + perBlock - 1; row >= first; row-- {
		r.free = append(r.free, row)
		r.owners, r.scales = append(r.owners, none), append(r.scales, 0)
	}
}

// remove frees a row.
func (r *rows) remove(row int32) {
	r.owners[row] = none
	r.free = append(r.free, row)
}

// similarities raises best, by slot, to the product of the query with each vector of the slots that
// are allowed. The 128 that was added to every value is taken off the product by the sum of the query's values.
func (r *rows) similarities(query Vector, allowed []bool, best []float32) {
	factors := make([]uint64, r.dim)
	var sum int64
	for i, value := range query.Values {
		factors[i] = uint64(int64(value))
		sum += int64(value)
	}
	for b, block := range r.blocks {
		owners := r.owners[b*perBlock : (b+1)*perBlock]
		if !anyAllowed(owners, allowed) {
			continue
		}
		products := multiply(block, factors)
		for i, slot := range owners {
			if slot != none && allowed[slot] {
				product := float32(products[i] - 128*sum)
				similarity := float32(product*query.Scale) * r.scales[b*perBlock+i]
				best[slot] = max(best[slot], similarity)
			}
		}
	}
}

// anyAllowed reports whether a slot of the rows is allowed.
func anyAllowed(owners []int32, allowed []bool) bool {
	for _, slot := range owners {
		if slot != none && allowed[slot] {
			return true
		}
	}
	return false
}

// multiply returns the product of the factors with each of the eight vectors of a block. Each of the four sums has the
// products of two vectors, one in each half. A negative product in the low half borrows from the high one.
func multiply(block, factors []uint64) (products [perBlock]int64) {
	factors = factors[:len(block)]
	var a, b, c, d uint64
	for i, w := range block {
		f := factors[i]
		a += (w & pair) * f
		b += (w >> 8 & pair) * f
		c += (w >> 16 & pair) * f
		d += (w >> 24 & pair) * f
	}
	for i, word := range [4]uint64{a, b, c, d} {
		low := int64(int32(word))
		products[i] = low
		products[i+4] = int64(word-uint64(low)) >> 32 // a negative low half had borrowed from the high one
	}
	return products
}
