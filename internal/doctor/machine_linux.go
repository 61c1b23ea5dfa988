package doctor

import (
	"bufio"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// memory reads /proc/meminfo and the limit of the container, if there is one.
func memory() *Memory {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	var m Memory
	for s := bufio.NewScanner(f); s.Scan(); {
		fields := strings.Fields(s.Text()) // MemTotal: 24617108 kB
		if len(fields) < 2 {
			continue
		}
		kb, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			continue
		}
		switch fields[0] {
		case "MemTotal:":
			m.Total = kb << 10
		case "MemAvailable:":
			m.Available = kb << 10
		}
	}
	if m.Total == 0 {
		return nil
	}
	if limit, ok := number("/sys/fs/cgroup/memory.max"); ok && limit < m.Total {
		m.Total = limit
		if used, ok := number("/sys/fs/cgroup/memory.current"); ok {
			m.Available = min(m.Available, max(limit-used, 0))
		}
	}
	return &m
}

// number reads a file that holds one number. A limit that is not set reads "max".
func number(path string) (int64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

// diskFree returns the bytes that this user may still write in the file system of
// path.
func diskFree(path string) (int64, bool) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, false
	}
	return int64(s.Bavail) * s.Bsize, true
}
