package rows

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"repute"
	"repute/store/trustdb"
	"repute/trust/flow"
	"repute/trust/rating"
)

// numbers numbers what many ratings have in common: a rating has a number of four bytes in place of an address or a
// text. Every slice is the inverse of the map whose name is in the singular. Entries are added by passes under the lock
// of the Store and never removed: a value that only revoked ratings had stays until everything is read again.
type numbers struct {
	addresses flow.Addresses // raters, gateways and owners
	// kinds has each combination of value, tags and gateway once.
	kinds  []kind
	kind   map[kind]uint32
	values []repute.Amount
	value  map[string]uint32 // by the binary number and the decimals
	// tags has the texts of the tags whose number is below tagsKnown. Later ones are zero until readTags.
	tags []trustdb.SnapshotTag
	// tag has the number of each tag, by its key in the database.
	tag       map[int64]uint32
	tagsKnown int // tags of which the text was read
}

// kind is what a rating says, and the feedback gateway that wrote it, by their numbers in numbers. via is 1 more than
// the number of the gateway, 0 for none.
type kind struct{ value, tag1, tag2, via uint32 }

// newNumbers returns empty numbers.
func newNumbers() numbers {
	return numbers{kind: map[kind]uint32{}, value: map[string]uint32{}, tag: map[int64]uint32{}}
}

// tagOf returns the number of a tag by its key in the table of tags.
func (n *numbers) tagOf(key int64) uint32 {
	i, known := n.tag[key]
	if !known {
		i = uint32(len(n.tag))
		n.tag[key] = i
	}
	return i
}

// ratingOf returns a rating without its agent. The texts of its tags are not known before readTags.
//
// A rating that came through a feedback gateway has the gateway as its client and the payer as its rater. An empty
// payer, other than none, means that no ticket names the payer: then rater and gateway are the same address. A time
// outside of 32 bits is written as 0, which means unknown: such a rating is excluded as undated. A block or a URI
// beyond 32 bits is an error: to cut it off would mix two ratings up.
func (n *numbers) ratingOf(from *trustdb.Snapshot, r *trustdb.SnapshotRating) (out rating.PackedRow, err error) {
	if r.Block > math.MaxUint32 || r.URI < 0 || r.URI > math.MaxUint32 {
		return out, fmt.Errorf("block %d, URI %d: beyond the numbers that the store has", r.Block, r.URI)
	}
	out = rating.PackedRow{Block: uint32(r.Block), Log: r.LogIndex, Content: uint32(r.URI)}
	if r.Time > 0 && r.Time <= math.MaxUint32 { // others do not count
		out.Time = uint32(r.Time)
	}
	key := kind{tag1: n.tagOf(r.Tag1), tag2: n.tagOf(r.Tag2)}
	rater := r.Client
	if r.Payer != nil {
		key.via = n.addresses.Add(r.Client) + 1
		if len(r.Payer) > 0 {
			rater = common.BytesToAddress(r.Payer)
		}
	}
	out.Writer = n.addresses.Add(rater)
	if key.value, err = n.valueOf(from, r); err != nil {
		return out, err
	}
	i, known := n.kind[key]
	if !known {
		i = uint32(len(n.kinds))
		n.kind[key], n.kinds = i, append(n.kinds, key)
	}
	out.Kind = i
	return out, nil
}

// valueOf returns the number of a rating's value. The decimals are part of the key, because they decide which amount
// the binary number means.
func (n *numbers) valueOf(from *trustdb.Snapshot, r *trustdb.SnapshotRating) (uint32, error) {
	var space [64]byte
	raw := append(append(space[:0], r.Value...), r.Decimals)
	if i, known := n.value[string(raw)]; known {
		return i, nil
	}
	v, err := from.DecodeValue(r.Value)
	if err != nil {
		return 0, fmt.Errorf("value: %w", err)
	}
	i := uint32(len(n.values))
	n.value[string(raw)], n.values = i, append(n.values, repute.Amount{Value: v.Int, Decimals: r.Decimals})
	return i, nil
}

// readTags reads the texts of tags that are new. It is called before anybody reads a row, and asks only for tags whose
// numbers are new since the last call.
func (n *numbers) readTags(ctx context.Context, from *trustdb.Snapshot) error {
	if len(n.tag) == n.tagsKnown {
		return nil
	}
	n.tags = append(n.tags, make([]trustdb.SnapshotTag, len(n.tag)-len(n.tags))...)
	var keys []int64
	for key, i := range n.tag {
		if int(i) >= n.tagsKnown {
			keys = append(keys, key)
		}
	}
	const most = 10_000
	for part := range slices.Chunk(keys, most) {
		texts, err := from.Tags(ctx, part)
		if err != nil {
			return fmt.Errorf("tags: %w", err)
		}
		for key, text := range texts {
			n.tags[n.tag[key]] = text
		}
	}
	n.tagsKnown = len(n.tag)
	return nil
}

// readings has what the kinds of ratings mean by the parameters of a run, and the nodes of the raters in its graph. It
// is valid for one pair of parameters and graph, which readingsOf compares by their addresses: parameters are never
// changed once a run has begun. graph and the packing's nodes are nil until find.
type readings struct {
	params  *rating.Params
	packing *rating.Packing
	graph   *flow.Graph
}

// mostKinds bounds the memory of kinds. Beyond it each row is read by itself. A chain on which nearly every rating has
// a tag or value of its own has nothing to gain from packing.
const mostKinds = 1 << 20

// newReadings reads what all kinds mean, once instead of once for each rating. Kinds that differ only in the gateway
// have one text, as have amounts that are written alike. The length of tag1 is part of the text, or "a b" with "c" and
// "a" with "b c" would be one. With too many kinds it returns a packing without kinds, which said and the readers of
// packed rows understand.
func newReadings(n *numbers, p *rating.Params) *readings {
	out := &readings{params: p, packing: &rating.Packing{Raters: n.addresses.List(), Expand: n.row}}
	if len(n.kinds) > mostKinds {
		return out
	}
	out.packing.Kinds = make([]rating.PackedKind, len(n.kinds))
	texts := map[string]uint32{}
	var row rating.Row
	for i := range n.kinds {
		n.row(&rating.PackedRow{Kind: uint32(i)}, &row)
		k := &out.packing.Kinds[i]
		k.Said, k.Via = p.Said(&row), n.kinds[i].via
		text := fmt.Sprintf("%s %d %s %s", row.Amount.Decimal(), len(row.Tag1), row.Tag1, row.Tag2)
		number, known := texts[text]
		if !known {
			number = uint32(len(texts))
			texts[text] = number
		}
		k.Text = number
	}
	return out
}

// find sets the nodes of all raters in a graph that was built of the same numbers of addresses. Raters are a prefix of
// the graph's nodes by number; owners and roots that the graph added itself follow.
func (r *readings) find(g *flow.Graph) {
	r.graph, r.packing.Nodes = g, g.Nodes()[:len(r.packing.Raters)]
}

// said returns what a kind means, nil when it is unknown: with too many kinds, or for one that was added after
// newReadings. Callers then read the row by itself.
func (r *readings) said(kind uint32) *rating.Said {
	if int(kind) >= len(r.packing.Kinds) {
		return nil
	}
	return r.packing.Kinds[kind].Said
}

// row sets a row of evidence to a rating. Content is a hash in rows of evidence and a key here: the first byte keeps it
// from the zero hash, which means that there is no content. Writer is one more than the number, because 0 means none.
func (n *numbers) row(r *rating.PackedRow, to *rating.Row) {
	k := &n.kinds[r.Kind]
	*to = rating.Row{Block: uint64(r.Block), LogIndex: r.Log, Time: int64(r.Time), Rater: n.addresses.At(r.Writer),
		Amount: n.values[k.value], Tag1: n.tags[k.tag1].Text, Tag2: n.tags[k.tag2].Text, Writer: r.Writer + 1}
	if n.tags[k.tag1].Other {
		to.Tag1 = rating.UnreadTag
	}
	if k.via != 0 {
		to.Via = n.addresses.At(k.via - 1)
	}
	to.Content = common.Hash{0: 1, 28: byte(r.Content >> 24), 29: byte(r.Content >> 16), 30: byte(r.Content >> 8),
		31: byte(r.Content)}
}
