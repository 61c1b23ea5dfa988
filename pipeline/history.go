package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dreamguard/dreamguard/guard/artifact"
	"github.com/dreamguard/dreamguard/internal/atomicfile"
	"github.com/dreamguard/dreamguard/internal/boundedfile"
	"github.com/dreamguard/dreamguard/internal/filelock"
)

// ErrHistory is wrapped by the errors about the kept calibrations of an artifact.
var ErrHistory = errors.New("calibration history")

// HistoryEntry is one calibration of an artifact, in force or kept.
type HistoryEntry struct {
	Number      int                   `json:"number"` // 1 is the oldest; the one in force is the last
	Current     bool                  `json:"current,omitempty"`
	Digest      string                `json:"digest,omitempty"`
	Calibration *artifact.Calibration `json:"-"`
	Problem     string                `json:"problem,omitempty"` // why it cannot be used; empty if it can

	raw []byte
}

// CalibrationLog lists the calibrations of the artifact in the folder dir, oldest
// first. A file that does not load is listed with its problem.
func CalibrationLog(dir string) ([]HistoryEntry, error) {
	if dir == BuiltIn {
		return nil, fmt.Errorf("no log: %w", ErrBuiltIn)
	}
	model, err := modelDigest(dir)
	if err != nil {
		return nil, err
	}
	numbers, err := keptNumbers(dir)
	if err != nil {
		return nil, err
	}
	var out []HistoryEntry
	add := func(number int, path string) error {
		e := HistoryEntry{Number: number}
		e.raw, err = readBounded(path)
		switch c, bad := artifact.ParseCalibration(e.raw, model); {
		case err != nil && filepath.Base(path) == artifact.CalibrationFile:
			return err
		case err != nil: // a folder, a pipe: no reason to hide the others
			e.Problem = err.Error()
		case bad != nil:
			e.Problem = bad.Error()
		default:
			e.Calibration, e.Digest = c, c.Digest
		}
		out = append(out, e)
		return nil
	}
	last := 0
	for _, n := range numbers {
		if err := add(n, keptPath(dir, n)); err != nil {
			return nil, err
		}
		last = n
	}
	err = add(last+1, filepath.Join(dir, artifact.CalibrationFile))
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return nil, err
	}
	now := &out[len(out)-1]
	now.Current = true
	// A kill between keeping a calibration and replacing it leaves it in both places.
	if n := len(out); n > 1 && string(out[n-2].raw) == string(now.raw) {
		now.Number--
		out = slices.Delete(out, n-2, n-1)
	}
	return out, nil
}

// RevertCalibration puts a kept calibration in force again, and keeps the one it
// replaces. number is that of [CalibrationLog]; 0 is the last one before the
// current.
func RevertCalibration(dir string, number int) (HistoryEntry, error) {
	if dir == BuiltIn {
		return HistoryEntry{}, ErrBuiltIn
	}
	unlock, err := lockHistory(dir)
	if err != nil {
		return HistoryEntry{}, err
	}
	defer unlock()
	log, err := CalibrationLog(dir)
	if err != nil {
		return HistoryEntry{}, err
	}
	bad := func(format string, a ...any) (HistoryEntry, error) {
		return HistoryEntry{}, fmt.Errorf("%s: %w: %s", dir, ErrHistory, fmt.Sprintf(format, a...))
	}
	at := -1
	for i, e := range log {
		if number == 0 && !e.Current || number == e.Number {
			at = i
		}
	}
	switch {
	case at < 0 && number == 0:
		return bad("there is no earlier calibration")
	case at < 0:
		return bad("there is no calibration %d: `dreamguard calibration log` lists them", number)
	case log[at].Current:
		return bad("calibration %d is in force already", number)
	case log[at].Problem != "":
		return bad("calibration %d cannot be used: %s", log[at].Number, log[at].Problem)
	}
	return log[at], replaceCalibration(dir, log[at].raw)
}

// installCalibration puts a calibration in force and keeps the one it replaces.
func installCalibration(dir string, c *artifact.Calibration) error {
	unlock, err := lockHistory(dir)
	if err != nil {
		return err
	}
	defer unlock()
	b, err := c.Marshal()
	if err != nil {
		return err
	}
	model, err := modelDigest(dir)
	if err != nil {
		return err
	}
	if _, err := artifact.ParseCalibration(b, model); err != nil { // another model may lie there by now
		return fmt.Errorf("%s: %w", dir, err)
	}
	return replaceCalibration(dir, b)
}

// replaceCalibration is called with the history locked. The old file is kept
// before the new one takes its place: a kill in between loses nothing.
func replaceCalibration(dir string, b []byte) error {
	path := filepath.Join(dir, artifact.CalibrationFile)
	old, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case string(old) == string(b):
		return nil
	default:
		if err := keep(dir, old); err != nil {
			return err
		}
	}
	return atomicfile.WriteFile(path, b)
}

// replacingCalibration calls do, which takes the calibration of the run's artifact
// out of force. One that the run has no record of, such as that of a
// recalibration, is kept in the history first: nothing could make it again.
func (r *Run) replacingCalibration(do func() error) error {
	dir := r.ArtifactDir()
	path := filepath.Join(dir, artifact.CalibrationFile)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return do() // without a lock, whose folder might have no artifact around it
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return err
	}
	defer unlock()
	b, err := readBounded(path)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, boundedfile.ErrTooLarge), errors.Is(err, boundedfile.ErrNotRegular): // nothing, or no calibration
	case err != nil:
		return err
	case artifact.Sum(b) != r.outputsOf("calibrate")[filepath.Join("artifact", artifact.CalibrationFile)]:
		if err := keep(dir, b); err != nil {
			return err
		}
		numbers, err := keptNumbers(dir)
		if err != nil {
			return err
		}
		r.opts.Log.Warn("the calibration in force was not made by this run, by recalibrate for example: it is replaced, and kept", "number", numbers[len(numbers)-1], "see", "dreamguard calibration log --artifact "+dir)
	}
	return do()
}

// dropTwin removes the last kept calibration if it is the one in force: a kill
// before the record of the stage was written makes it be kept and made again.
func dropTwin(dir string) error {
	numbers, err := keptNumbers(dir)
	if err != nil || len(numbers) == 0 {
		return err
	}
	unlock, err := lockFolder(dir)
	if err != nil {
		return err
	}
	defer unlock()
	if numbers, err = keptNumbers(dir); err != nil || len(numbers) == 0 {
		return err
	}
	now, err := readBounded(filepath.Join(dir, artifact.CalibrationFile))
	if err != nil {
		return err
	}
	last := keptPath(dir, numbers[len(numbers)-1])
	if b, err := readBounded(last); err != nil || string(b) != string(now) { // whatever it is, it is no twin
		return nil
	}
	return os.Remove(last)
}

func keep(dir string, b []byte) error {
	numbers, err := keptNumbers(dir)
	if err != nil {
		return err
	}
	next := 1
	if n := len(numbers); n > 0 {
		next = numbers[n-1] + 1
		if last, err := readBounded(keptPath(dir, numbers[n-1])); err == nil && string(last) == string(b) {
			return nil
		}
	}
	return atomicfile.WriteFile(keptPath(dir, next), b)
}

func keptPath(dir string, n int) string {
	return filepath.Join(dir, artifact.HistoryFolder, fmt.Sprintf("%04d.json", n))
}

// keptNumbers lists the numbers of the kept calibrations, rising.
func keptNumbers(dir string) ([]int, error) {
	entries, err := os.ReadDir(filepath.Join(dir, artifact.HistoryFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []int
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if n, err := strconv.Atoi(name); ok && err == nil && n > 0 && filepath.Base(keptPath(dir, n)) == e.Name() {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, nil
}

// lockHistory keeps two processes from replacing the calibration at once.
func lockHistory(dir string) (unlock func(), err error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, fmt.Errorf("%s: %w: the artifact is a file: unpack it, or write the calibration elsewhere with --out FILE", dir, ErrHistory)
	}
	if _, err := modelDigest(dir); err != nil { // make no folder where no artifact is
		return nil, err
	}
	return lockFolder(dir)
}

// lockFolder is lockHistory for a folder that is known to be that of an artifact.
func lockFolder(dir string) (unlock func(), err error) {
	folder := filepath.Join(dir, artifact.HistoryFolder)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return nil, err
	}
	return filelock.Lock(filepath.Join(folder, ".lock"), filelock.Exclusive)
}

// modelDigest reads the model digest of the artifact in a folder, which need not
// have a sound calibration.
func modelDigest(dir string) (string, error) {
	_, digest, err := artifact.OpenManifest(dir)
	return digest, err
}

// readBounded reads a file that is at most as large as a calibration may be.
func readBounded(path string) ([]byte, error) {
	return boundedfile.Read(path, artifact.MaxCalibration)
}
