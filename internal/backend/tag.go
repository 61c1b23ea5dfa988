//go:build xla && !cgo

package backend

// hasTag is part of the message of a build without XLA.
const hasTag = true
