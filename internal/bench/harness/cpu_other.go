//go:build !unix

package harness

// ProcessorSeconds is not to be had here.
func ProcessorSeconds() float64 { return 0 }
