package bench

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"
)

// binaryCopy writes rows as COPY would; nil is null.
func binaryCopy(rows ...[][]byte) []byte {
	out := append([]byte{}, copyHeader...)
	for _, row := range rows {
		out = binary.BigEndian.AppendUint16(out, uint16(len(row)))
		for _, field := range row {
			if field == nil {
				out = append(out, 0xff, 0xff, 0xff, 0xff)
				continue
			}
			out = binary.BigEndian.AppendUint32(out, uint32(len(field)))
			out = append(out, field...)
		}
	}
	return append(out, copyTrailer...)
}

func TestPlaces(t *testing.T) {
	row := func(fields ...string) (r [][]byte) {
		for _, f := range fields {
			r = append(r, []byte(f))
		}
		return r
	}
	for name, c := range map[string]struct {
		rows  [][][]byte
		sizes []int64
	}{
		"none":        {nil, nil},
		"one":         {[][][]byte{row("abc")}, []int64{2 + 4 + 3}},
		"null, empty": {[][][]byte{{nil, {}}, row("x", "yz")}, []int64{2 + 4 + 4, 2 + 4 + 1 + 4 + 2}},
		"longer than the reader": {[][][]byte{row(strings.Repeat("a", 100_000)), row("b")},
			[]int64{2 + 4 + 100_000, 2 + 4 + 1}},
	} {
		at, err := places(bufio.NewReader(bytes.NewReader(binaryCopy(c.rows...))))
		if err != nil || len(at) != len(c.sizes)+1 || at[0] != int64(len(copyHeader)) {
			t.Errorf("%s: got %v, %v", name, at, err)
			continue
		}
		for i, size := range c.sizes {
			if at[i+1]-at[i] != size {
				t.Errorf("%s: row %d has %d bytes, want %d", name, i, at[i+1]-at[i], size)
			}
		}
	}
	cut := binaryCopy(row("abc"))
	if _, err := places(bufio.NewReader(bytes.NewReader(cut[:len(cut)-4]))); err == nil {
		t.Error("a stream that ends within a row was accepted")
	}
}

func TestFirstDifference(t *testing.T) {
	long := strings.Repeat("x", 3<<20) // longer than the readers' buffers
	for name, c := range map[string]struct{ got, want, difference string }{
		"equal":      {"a\nb\n", "a\nb\n", ""},
		"empty":      {"", "", ""},
		"line":       {"a\nc\n", "a\nb\n", "line 2"},
		"shorter":    {"a\n", "a\nb\n", "line 2"},
		"longer":     {"a\nb\n", "a\n", "line 2"},
		"long equal": {long + "\nb\n", long + "\nb\n", ""},
		"long":       {long + "y\n", long + "z\n", "line"},
		"no newline": {"a", "a\n", "line 1"},
	} {
		got, err := firstDifference(strings.NewReader(c.got), strings.NewReader(c.want))
		if err != nil || (got == "") != (c.difference == "") || !strings.Contains(got, c.difference) {
			t.Errorf("%s: got %.80q, %v; want %q", name, got, err, c.difference)
		}
	}
}

func TestDelays(t *testing.T) {
	var all []float64
	for i := range 120 {
		all = append(all, float64(120-i)) // 1 to 120
	}
	if d := delaysOf(all); d.Median != 60.5 || d.P90 != 108 || d.P99 != 119 || d.Longest != 120 || len(d.All) != 120 {
		t.Errorf("got %+v", d)
	}
	if none := delaysOf(nil); none.Median != 0 || none.P99 != 0 {
		t.Errorf("got %+v", none)
	}
}

// A block counts as visible when an answer shows it and everything up to it, also
// when that answer came before anybody expected the block.
func TestWatchSettles(t *testing.T) {
	w := &watch{heard: map[uint64]time.Time{}}
	start := time.Now()
	for n := range uint64(3) {
		w.heard[n+1] = start
	}
	w.expect(1, 10)
	w.see(view{block: 1, rated: 9, at: start.Add(time.Second)}) // the block, not all of it
	w.see(view{block: 2, rated: 20, at: start.Add(2 * time.Second)})
	w.expect(2, 20)
	w.expect(3, 30)
	w.see(view{block: 2, rated: 20, at: start.Add(3 * time.Second)})
	w.see(view{block: 3, rated: 30, at: start.Add(5 * time.Second)})
	w.see(view{block: 3, rated: 30, scored: 2, at: start.Add(6 * time.Second)})
	w.see(view{block: 3, rated: 30, scored: 3, at: start.Add(7 * time.Second)})
	m := w.measurements()
	if want := []float64{2000, 2000, 5000}; !slices.Equal(m.Visible.All, want) {
		t.Errorf("visible %v, want %v", m.Visible.All, want)
	}
	if want := []float64{6000, 6000, 7000}; !slices.Equal(m.Scored.All, want) {
		t.Errorf("scored %v, want %v", m.Scored.All, want)
	}
}
