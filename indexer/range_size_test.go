package indexer

import (
	"testing"

	"pgregory.net/rapid"
)

func newTestSizer() rangeSizer { return newRangeSizer(2_000, 5_000, load{1_000, 1e6}) }

func TestPace(t *testing.T) {
	t.Parallel()
	p := newTestSizer()
	p.shrink(2_000, 0)
	p.shrink(1_000, 0)
	if p.size != 500 {
		t.Errorf("two failures: %d, want 500", p.size)
	}
	for range probeAfter {
		p.grow(p.size, load{})
		if p.size >= 1_000 {
			t.Fatalf("grew to %d although 1,000 was refused", p.size)
		}
	}
	if p.size < 850 {
		t.Errorf("stayed at %d although only 1,000 was refused", p.size)
	}
	for range 20 {
		p.grow(p.size, load{})
	}
	if p.size != 5_000 {
		t.Errorf("long after the refusal: %d, want the maximum", p.size)
	}
	for range 20 {
		p.shrink(p.size, 0)
	}
	if p.size != 1 {
		t.Errorf("after many failures: %d, want 1", p.size)
	}
}

// However a node's cap is told, few questions are refused before the size settles
// just below it.
func TestPaceFindsTheCap(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Uint64Range(1, 6_000).Draw(t, "limit")
		told := rapid.Bool().Draw(t, "told")
		p, refused := newTestSizer(), 0
		for range probeAfter / 2 {
			if p.size <= limit {
				p.grow(p.size, load{})
				continue
			}
			refused++
			hint := uint64(0)
			if told {
				hint = limit
			}
			p.shrink(p.size, hint)
		}
		if most := 20; refused > most {
			t.Errorf("%d refusals, want no more than %d", refused, most)
		}
		if want := min(limit, p.most); p.size > limit || p.size < want-want/4-1 {
			t.Errorf("size %d at a cap of %d", p.size, limit)
		}
	})
}

func TestPaceFollowsDensity(t *testing.T) {
	t.Parallel()
	p := newTestSizer()
	p.grow(p.size, load{logs: float64(p.size) * 10})
	if p.size != 100 {
		t.Errorf("10 logs per block: %d blocks, want 100", p.size)
	}
	for range 100 {
		p.grow(p.size, load{logs: float64(p.size)})
	}
	if p.size < 900 || p.size > 1_000 {
		t.Errorf("1 log per block: %d blocks, want about 1,000", p.size)
	}
	p.grow(p.size, load{bytes: float64(p.size) * 1e5})
	if p.size != 10 {
		t.Errorf("100 kB per block: %d blocks, want 10", p.size)
	}
	p.grow(p.size, load{bytes: float64(p.size) * 1e7})
	if p.size != 1 {
		t.Errorf("a block larger than the target: %d blocks, want 1", p.size)
	}
}

// An old, longer range that is refused late does not make the next one longer.
func TestPaceLateRefusal(t *testing.T) {
	t.Parallel()
	p := newTestSizer()
	p.shrink(100, 0)
	p.shrink(2_000, 0)
	if p.size != 50 || p.ceiling != 100 {
		t.Errorf("size %d, ceiling %d, want 50 and 100", p.size, p.ceiling)
	}
}
