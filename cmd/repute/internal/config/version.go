package config

import (
	"fmt"
	"runtime"
)

// Version is the version of this build, set by the linker; "dev" without it.
var Version = "dev"

// Build names this build.
func Build() string {
	return fmt.Sprintf("repute %s %s %s/%s", Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
