package pipeline

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"
	"time"
)

// Look is one line of docs/looks.jsonl: somebody measured on the locked sets.
type Look struct {
	Date        string `json:"date"`
	Commit      string `json:"commit"` // of the program, "" if it was built outside a checkout
	Config      string `json:"config"`
	Model       string `json:"model"`       // digest of manifest.json
	Calibration string `json:"calibration"` // digest of calibration.json's file
}

// recordLook notes that the run's artifact is about to be measured on the locked
// sets.
func recordLook(path string, r *Run) error {
	return appendLook(path, Look{
		Date:        r.now().UTC().Format(time.RFC3339),
		Config:      r.Config.Name,
		Model:       r.ledger.Stages["export"].Outputs["artifact/manifest.json"],
		Calibration: r.ledger.Stages["calibrate"].Outputs["artifact/calibration.json"],
	})
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
		return fmt.Errorf("a look at the locked sets must be recorded: %w", err)
	}
	if _, err = f.Write(append(b, '\n')); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return err
}
