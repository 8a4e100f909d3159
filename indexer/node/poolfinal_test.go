package node

import "testing"

func TestSeconded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		named   []uint64
		missing bool
		want    uint64
	}{
		{nil, false, 0}, {[]uint64{9}, false, 9}, {[]uint64{9}, true, 0},
		{[]uint64{9, 5}, false, 5}, {[]uint64{5, 9}, true, 5}, {[]uint64{1, 100, 9}, false, 9},
	} {
		if got := seconded(tt.named, tt.missing); got != tt.want {
			t.Errorf("%v, missing %t: %d, want %d", tt.named, tt.missing, got, tt.want)
		}
	}
}
