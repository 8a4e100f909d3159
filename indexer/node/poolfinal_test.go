package node

import "testing"

func TestSeconded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		named   map[string]uint64
		waiting []string
		want    uint64
	}{
		{nil, nil, 0}, {map[string]uint64{"a": 9}, nil, 9}, {map[string]uint64{"a": 9}, []string{"b"}, 0},
		{map[string]uint64{"a": 9}, []string{"a"}, 9}, {map[string]uint64{"a": 9, "b": 0}, []string{"b"}, 0},
		{map[string]uint64{"a": 9, "b": 5}, nil, 5}, {map[string]uint64{"a": 5, "b": 9}, []string{"c"}, 5},
		{map[string]uint64{"a": 1, "b": 100, "c": 9}, nil, 9},
	} {
		waiting := map[string]bool{}
		for _, host := range tt.waiting {
			waiting[host] = true
		}
		if got := confirmedBlock(tt.named, waiting); got != tt.want {
			t.Errorf("%v, waiting for %v: %d, want %d", tt.named, tt.waiting, got, tt.want)
		}
	}
}
