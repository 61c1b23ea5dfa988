//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package cache

func mapFile(path string) ([]byte, func() error, error) { return readAll(path) }
