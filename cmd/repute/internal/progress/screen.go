package progress

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/cwriter"
	"github.com/vbauerster/mpb/v8/decor"
)

// screenRefresh is the interval of drawing bars.
const screenRefresh = 200 * time.Millisecond

// Screen is where a program writes messages: above the progress bars on a terminal, otherwise
// unchanged. It is safe for concurrent use.
type Screen struct {
	out  io.Writer
	bars *mpb.Progress // nil without bars
}

// NewScreen draws bars only on a terminal with enough columns: terminals that programs create may
// have 0 columns.
func NewScreen(out io.Writer, terminal bool) *Screen {
	s := &Screen{out: out}
	if terminal && roomy(out) {
		s.bars = mpb.New(mpb.WithOutput(out), mpb.WithAutoRefresh(), mpb.WithRefreshRate(screenRefresh),
			mpb.WithWidth(30))
	}
	return s
}

// roomy reports whether a terminal has columns to draw in. An unknown width counts as enough.
func roomy(out io.Writer) bool {
	w := cwriter.New(out)
	if !w.IsTerminal() {
		return true
	}
	width, _, err := w.GetTermSize()
	return err == nil && width > 0
}

// Write prints whole lines above the bars, at the next drawing.
func (s *Screen) Write(b []byte) (int, error) {
	if s.bars == nil {
		return s.out.Write(b)
	}
	n, err := s.bars.Write(b)
	if errors.Is(err, mpb.ErrDone) {
		return s.out.Write(b)
	}
	return n, err
}

// Close draws the final state and stops drawing.
func (s *Screen) Close() {
	if s.bars != nil {
		s.bars.Shutdown()
	}
}

// bar is one line of the screen.
type bar struct {
	bar  *mpb.Bar
	text atomic.Pointer[string]
}

// add adds a bar. It never completes, because a chain grows.
func (s *Screen) add(name string) *bar {
	b := new(bar)
	b.text.Store(new(string))
	b.bar = s.bars.New(0, mpb.BarStyle().Rbound("]").Lbound("["),
		mpb.PrependDecorators(decor.Name(name, decor.WC{C: decor.DindentRight | decor.DextraSpace | decor.DSyncWidth})),
		mpb.AppendDecorators(decor.Any(func(decor.Statistics) string { return *b.text.Load() })))
	return b
}

// show sets the bar to done out of all, with a text after it.
func (b *bar) show(done, all uint64, text string) {
	b.text.Store(&text)
	b.bar.SetTotal(int64(max(all, 1)), false)
	b.bar.SetCurrent(int64(min(done, all)))
}
