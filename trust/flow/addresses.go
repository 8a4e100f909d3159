package flow

import (
	"hash/maphash"
	"slices"

	"github.com/ethereum/go-ethereum/common"
)

// Addresses numbers addresses from 0 on, in the order in which they were added. It takes half the memory of a map, and
// a Clone shares the addresses. The zero value is empty. It is safe for concurrent use as long as nobody adds.
type Addresses struct {
	list []common.Address
	// slots has the numbers plus 1 by the hash of the address, 0 for a free slot. Its length is a power of two. The
	// seed of the hash is random, because anybody can choose the addresses.
	slots []uint32
	seed  maphash.Seed
	order []uint32 // the first numbers in order of their addresses; it is replaced and never changed
}

// leastSlots is the size of the first table of slots.
const leastSlots = 16

// Len returns how many addresses there are.
func (x *Addresses) Len() int { return len(x.list) }

// At returns the address with a number.
func (x *Addresses) At(n uint32) common.Address { return x.list[n] }

// List returns all addresses by their numbers. The caller MUST NOT change them.
func (x *Addresses) List() []common.Address { return slices.Clip(x.list) }

// Find returns the number of an address.
func (x *Addresses) Find(a common.Address) (n uint32, known bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	n = x.slots[x.slotOf(a)]
	return n - 1, n != 0
}

// slotOf returns the slot of an address, or the free one where it would be.
func (x *Addresses) slotOf(a common.Address) uint64 {
	mask := uint64(len(x.slots) - 1)
	i := maphash.Bytes(x.seed, a[:]) & mask
	for x.slots[i] != 0 && x.list[x.slots[i]-1] != a {
		i = (i + 1) & mask
	}
	return i
}

// Add returns the number of an address, and adds the address if it is unknown.
func (x *Addresses) Add(a common.Address) uint32 {
	if 2*len(x.list) >= len(x.slots) { // half of the slots are free, so that searches are short
		x.resize(max(leastSlots, 2*len(x.slots)))
	}
	slot := &x.slots[x.slotOf(a)]
	if *slot == 0 {
		x.list = append(x.list, a)
		*slot = uint32(len(x.list))
	}
	return *slot - 1
}

// resize replaces the slots by so many.
func (x *Addresses) resize(slots int) {
	if len(x.slots) == 0 {
		x.seed = maphash.MakeSeed()
	}
	x.slots = make([]uint32, slots)
	for n, a := range x.list {
		x.slots[x.slotOf(a)] = uint32(n + 1)
	}
}

// Clone returns the same numbers, to which addresses may be added without a change of x.
func (x *Addresses) Clone() Addresses {
	return Addresses{list: slices.Clip(x.list), slots: slices.Clone(x.slots), seed: x.seed, order: x.order}
}

// Order returns all numbers in order of their addresses. The caller MUST NOT change them. Only the addresses that were
// added since the last call are sorted.
func (x *Addresses) Order() []uint32 {
	if len(x.order) == len(x.list) {
		return x.order
	}
	keys := make([]addressKey, 0, len(x.list)-len(x.order))
	for n := len(x.order); n < len(x.list); n++ {
		keys = append(keys, keyOf(x.list[n], uint32(n)))
	}
	slices.SortFunc(keys, addressKey.compare)
	old, merged := x.order, make([]uint32, 0, len(x.list))
	for _, k := range keys {
		for len(old) > 0 && keyOf(x.list[old[0]], old[0]).compare(k) < 0 {
			merged, old = append(merged, old[0]), old[1:]
		}
		merged = append(merged, k.index)
	}
	x.order = append(merged, old...)
	return x.order
}

// Size returns about how many bytes of memory the addresses take.
func (x *Addresses) Size() int64 {
	return int64(len(x.list))*common.AddressLength + int64(len(x.slots)+len(x.order))*4
}
