//go:build !(xla && cgo)

package backend

import "github.com/gomlx/compute"

// openXLA says how to build with XLA.
func openXLA(name string) (compute.Backend, error) {
	if hasTag {
		return nil, unavailable(name, "this program was built with -tags xla but without cgo: build it with CGO_ENABLED=1 and a C compiler")
	}
	return nil, unavailable(name, "this program was built without it: build it with `CGO_ENABLED=1 go build -tags xla ./cmd/dreamguard`")
}
