package decisionlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/filelock"
)

// DefaultMaxBytes is the size at which a log is rotated.
const DefaultMaxBytes = 64 << 20

// Options configure a log. The zero value is the safe one.
type Options struct {
	// NoSync acknowledges a record once the system has it. It survives a kill of
	// the process, not of the machine.
	NoSync bool
	// Payloads keeps arguments, results and the agent's words in the clear, the first
	// 32 KiB of each, beside their keyed hashes.
	Payloads bool
	// KeyFile holds the key of the payload hashes: 64 hexadecimal digits. It is made
	// if it is not there; one that others can read is refused. "" is the log's path
	// with ".key" behind it.
	KeyFile string
	// MaxBytes is the size above which the file is renamed and a new one begun, 0 for
	// DefaultMaxBytes, below 0 for never. Old files are never removed.
	MaxBytes int64
	// Now is the clock, time.Now if nil. Order is that of the lines, so it may go
	// backwards.
	Now func() time.Time
}

// Errors of a log.
var (
	// ErrDamaged: the last line of the log is whole and not what was written.
	ErrDamaged = errors.New("decisionlog: the log is damaged")
	// ErrKey: the key file holds no key, or others can read it.
	ErrKey = errors.New("decisionlog: key file")
	// ErrClosed: the log was closed, or an earlier sync failed, after which nobody
	// knows what is on disk.
	ErrClosed = errors.New("decisionlog: the log is closed")
)

// Log appends to a decision log. It is safe for concurrent use, and several
// processes may have the same file open.
type Log struct {
	path string
	opts Options
	key  key

	mu   sync.Mutex // of what follows
	file *os.File
	size int64 // of the file after the last line that this Log knows of
	last link  // that line; seq 0 before the first record
	torn int

	sync syncer
}

// Open opens the log at path, or begins one. What a kill has cut short is removed
// and reported by an event; where the last line is whole and wrong the log is left
// as it is, [ErrDamaged].
func Open(path string, o Options) (*Log, error) {
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.KeyFile == "" {
		o.KeyFile = path + ".key"
	}
	l := &Log{path: path, opts: o}
	l.sync.init()
	unlock, err := l.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	secret, err := loadKey(o.KeyFile)
	if err != nil {
		return nil, err
	}
	l.key = newKey(secret)
	if err := l.follow(); err != nil {
		if l.file != nil {
			l.file.Close() // the first error is the one to report
		}
		return nil, err
	}
	return l, nil
}

func (l *Log) lock() (unlock func(), err error) {
	unlock, err = filelock.Lock(l.path+".lock", filelock.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("decision log %s: %w", l.path, err)
	}
	return unlock, nil
}

// Torn is how many bytes of lines that were cut short this Log has removed.
func (l *Log) Torn() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.torn
}

// Append writes a record. After a nil error it is on disk (see [Options.NoSync])
// and in its place in the chain. After another error it may or may not be in the
// log: of kind [ErrRecord] it is not, and the log takes others.
func (l *Log) Append(r Record) error {
	if err := r.check(); err != nil {
		return err
	}
	if r.Event == Recovered {
		return fmt.Errorf("%w: the event recovered is written by the log itself", ErrRecord)
	}
	if r.Time.IsZero() {
		r.Time = l.opts.Now()
	}
	line := newLine(&r, &l.key, l.opts.Payloads)
	ticket, err := l.write(line)
	if err == nil && !l.opts.NoSync {
		err = l.sync.wait(ticket)
	}
	if err != nil && !errors.Is(err, ErrRecord) {
		err = fmt.Errorf("decision log %s: %w", l.path, err)
	}
	return err
}

// write puts a line into the file and returns its number among those of this Log.
func (l *Log) write(x *line) (ticket uint64, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return 0, ErrClosed
	}
	if err := l.sync.err(); err != nil {
		return 0, err
	}
	unlock, err := l.lock()
	if err != nil {
		return 0, err
	}
	defer unlock()
	if err := l.follow(); err != nil {
		return 0, err
	}
	return l.put(x)
}

// put writes a line behind the last one.
func (l *Log) put(x *line) (ticket uint64, err error) {
	prev := l.last.hash
	if l.last.seq == 0 {
		prev = noPrev
	}
	b, hash, err := x.seal(l.last.seq+1, prev)
	if err != nil {
		return 0, err
	}
	if l.opts.MaxBytes > 0 && l.size > 0 && l.size+int64(len(b)) > l.opts.MaxBytes {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	if _, err := l.file.WriteAt(b, l.size); err != nil {
		// A part of the line may be there. If it cannot be taken back now, the next
		// writer does it.
		return 0, errors.Join(err, l.file.Truncate(l.size))
	}
	l.size += int64(len(b))
	l.last = link{seq: x.Seq, prev: prev, hash: hash}
	return l.sync.wrote(l.file), nil
}

// follow makes file, size and last those of the log on disk, which other processes
// may have written to or rotated. The lock is held.
func (l *Log) follow() (err error) {
	info, err := os.Stat(l.path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if l.file != nil && err == nil {
		have, err := l.file.Stat()
		if err != nil {
			return err
		}
		if os.SameFile(have, info) && info.Size() == l.size {
			return nil
		}
	}
	if err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", l.path)
	}
	known := l.last
	defer func() {
		if err != nil { // look again next time, with the same knowledge
			l.last, l.size = known, -1
		}
	}()
	if err := l.reopen(); err != nil {
		return err
	}
	tail, end, err := lastLine(l.file, l.path)
	if err != nil {
		return err
	}
	switch {
	case tail != nil:
		if l.last, err = readLine(tail); err != nil {
			return fmt.Errorf("%w: the last line of %s: %w: look at it with `dreamguard log verify`, then move the file away to begin a new log", ErrDamaged, l.path, err)
		}
	case l.last.seq == 0: // empty: it may go on from a file that was rotated
		if l.last, err = l.rotated(); err != nil {
			return err
		}
	}
	if l.last.seq < known.seq || l.last.seq == known.seq && l.last.hash != known.hash {
		return fmt.Errorf("%w: %s does not hold record %d any more, which was written to it", ErrDamaged, l.path, known.seq)
	}
	return l.recover(end)
}

// reopen opens the file at path, which is made where it is missing.
func (l *Log) reopen() error {
	if l.file != nil {
		if err := l.sync.flush(l.file); err != nil {
			return err
		}
		l.file.Close() // synced
		l.file = nil
	}
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	l.file, l.last = f, link{}
	return atomicfile.SyncDir(filepath.Dir(l.path))
}

// recover removes what follows the last line end, at offset end: a line that was
// cut short. One that lacks nothing but its end is completed.
func (l *Log) recover(end int64) error {
	l.size = end
	info, err := l.file.Stat()
	if err != nil || info.Size() == end {
		return err
	}
	b := make([]byte, min(info.Size()-end, MaxLine))
	if _, err := l.file.ReadAt(b, end); err != nil {
		return err
	}
	if x, err := readLine(b); err == nil && x.seq == l.last.seq+1 && int64(len(b)) == info.Size()-end {
		if _, err := l.file.WriteAt([]byte{'\n'}, info.Size()); err != nil {
			return err
		}
		l.size, l.last = info.Size()+1, x
		l.sync.wrote(l.file)
		return nil
	}
	h := sha256.New()
	n, err := io.Copy(h, io.NewSectionReader(l.file, end, info.Size()-end))
	if err != nil {
		return err
	}
	if err := l.file.Truncate(end); err != nil {
		return err
	}
	l.torn += int(n)
	x := newLine(&Record{Time: l.opts.Now(), Event: Recovered}, &l.key, false)
	x.Recovered = &recoveredLine{int(n), hex.EncodeToString(h.Sum(nil))}
	_, err = l.put(x)
	return err
}

// lastLine returns the last line of the file that has an end, without it, nil if
// there is none, and the offset behind it.
func lastLine(f *os.File, name string) (line []byte, end int64, err error) {
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	size := info.Size()
	// The line, and behind it one that was cut short.
	for n := int64(8 << 10); ; n *= 4 {
		n = min(n, size, 2*MaxLine)
		b := make([]byte, n)
		if _, err := f.ReadAt(b, size-n); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		stop := bytes.LastIndexByte(b, '\n')
		begin := -1
		if stop >= 0 {
			begin = bytes.LastIndexByte(b[:stop], '\n')
		}
		whole := n == size
		switch {
		case stop >= 0 && (begin >= 0 || whole):
			return b[begin+1 : stop], size - n + int64(stop) + 1, nil
		case whole:
			return nil, 0, nil
		case n == 2*MaxLine:
			return nil, 0, fmt.Errorf("%w: %s has a line of more than %d bytes: it is no decision log", ErrDamaged, name, MaxLine)
		}
	}
}

// rotate renames the file after its last record and begins another.
func (l *Log) rotate() error {
	if err := l.sync.flush(l.file); err != nil {
		return err
	}
	ext := filepath.Ext(l.path)
	old := fmt.Sprintf("%s.%012d%s", strings.TrimSuffix(l.path, ext), l.last.seq, ext)
	if _, err := os.Lstat(old); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("rotate: %s is there already (%v): move it away", old, err)
	}
	if err := os.Rename(l.path, old); err != nil {
		return err
	}
	last := l.last
	if err := l.reopen(); err != nil {
		return err
	}
	l.last, l.size = last, 0
	return nil
}

// Files returns the files of the log at path in the order of their records: those
// that were rotated and the one that is written to, where it exists.
func Files(path string) ([]string, error) {
	ext := filepath.Ext(path)
	stem := filepath.Base(strings.TrimSuffix(path, ext))
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		middle, begins := strings.CutPrefix(e.Name(), stem+".")
		middle, ends := strings.CutSuffix(middle, ext)
		if begins && ends && len(middle) == 12 && strings.Trim(middle, "0123456789") == "" {
			names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	slices.Sort(names)
	if _, err := os.Stat(path); err == nil {
		names = append(names, path)
	}
	return names, nil
}

// rotated returns the last record of the newest file that was rotated.
func (l *Log) rotated() (link, error) {
	names, err := Files(l.path)
	if err != nil {
		return link{}, err
	}
	names = slices.DeleteFunc(names, func(n string) bool { return n == l.path })
	if len(names) == 0 {
		return link{}, nil
	}
	name := names[len(names)-1]
	f, err := os.Open(name)
	if err != nil {
		return link{}, err
	}
	defer f.Close() // read only
	b, _, err := lastLine(f, name)
	if err != nil {
		return link{}, err
	}
	x, err := readLine(b)
	if err != nil {
		return link{}, fmt.Errorf("%w: the last line of %s: %w: look at it with `dreamguard log verify`", ErrDamaged, name, err)
	}
	return x, nil
}

// Close makes what was written durable and closes the log.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	err := errors.Join(l.sync.flush(l.file), l.file.Close())
	l.file = nil
	return err
}
