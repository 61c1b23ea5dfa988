//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package serve

import "io/fs"

// private is for systems with owners and modes.
func private(fs.FileInfo) error { return nil }

func inode(fs.FileInfo) uint64 { return 0 }

func mapFile(fs.File, int64) []byte { return nil }
