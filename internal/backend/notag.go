//go:build !xla

package backend

// hasTag is part of the message of a build without XLA.
const hasTag = false
