package pipeline

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/dreamguard/dreamguard/guard"
)

// Look is one line of docs/looks.jsonl: somebody measured on the locked sets.
type Look struct {
	Date        string `json:"date"`
	Commit      string `json:"commit"` // of the program, "" if it was built outside a checkout
	Config      string `json:"config"`
	Model       string `json:"model"`       // digest of manifest.json
	Calibration string `json:"calibration"` // digest of the calibration
}

// recordLook notes that the model is about to be measured on the locked sets.
func (r *Run) recordLook(path string, m *guard.Model) error {
	return appendLook(path, newLook(r.now(), r.Config.Name, m))
}

func newLook(now time.Time, config string, m *guard.Model) Look {
	return Look{Date: now.UTC().Format(time.RFC3339), Config: config, Model: m.Digest(), Calibration: m.CalibrationDigest()}
}

// appendLook appends a line to path, durably, before the look is taken.
func appendLook(path string, look Look) error {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				look.Commit = s.Value
			}
		}
	}
	b, err := json.Marshal(look)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return fmt.Errorf("a look at the locked sets must be recorded; name the file with --looks: %w", err)
	}
	if _, err = f.Write(append(b, '\n')); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
