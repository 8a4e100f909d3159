package finder

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// slow is a model that needs a moment for each text.
type slow struct {
	calls []string
	took  time.Duration
}

func (s *slow) Embed(ctx context.Context, texts []string) ([][]float32, error) {
	began := time.Now()
	defer func() { s.took += time.Since(began) }()
	s.calls = append(s.calls, fmt.Sprint(texts))
	time.Sleep(time.Millisecond)
	return [][]float32{{float32(len(s.calls))}}, ctx.Err()
}

func (*slow) Dim() int   { return 1 }
func (*slow) ID() string { return "slow" }

// A paced model embeds text by text, in order, and works for at most its share of the time.
func TestPacedModel(t *testing.T) {
	t.Parallel()
	s := &slow{}
	began := time.Now()
	got, err := paced{s, 3}.Embed(t.Context(), []string{"a", "b", "c"})
	if err != nil || fmt.Sprint(got, s.calls) != "[[1] [2] [3]] [[a] [b] [c]]" {
		t.Errorf("%v %v, %v", got, s.calls, err)
	}
	if all := time.Since(began); all < 4*s.took {
		t.Errorf("worked %v of %v", s.took, all)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (paced{s, 3}).Embed(ended, []string{"d", "e"}); !errors.Is(err, context.Canceled) ||
		len(s.calls) != 4 {
		t.Errorf("%v after %v", err, s.calls)
	}
}
