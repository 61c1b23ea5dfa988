//go:build !linux

package export

func exchange(temp, dir string) error { return exchangeByRename(temp, dir) }
