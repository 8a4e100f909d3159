//go:build !unix

package trustbench

// processorSeconds is not to be had here.
func processorSeconds() float64 { return 0 }
