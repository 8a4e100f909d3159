package config

import (
	"fmt"
	"runtime"
)

// Version is set by the linker.
var Version = "dev"

// Build names this build.
func Build() string {
	return fmt.Sprintf("repute %s %s %s/%s", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
