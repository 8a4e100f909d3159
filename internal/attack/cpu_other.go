//go:build !unix

package attack

// processorSeconds is not to be had here.
func processorSeconds() float64 { return 0 }
