package serve

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/dreamguard/dreamguard/floor"
	"github.com/dreamguard/dreamguard/floor/layer"
	"github.com/dreamguard/dreamguard/guard"
	"github.com/dreamguard/dreamguard/guard/artifact"
)

// Contained says what the containment floor keeps an agent from changing.
type Contained struct {
	Rules  string   // rules as of floor.Load; "" are the default ones
	Sealed []string // files that the agent may not write
	Dir    string   // where the agent's relative paths begin; "" is the working folder
	Claude bool     // the settings of Claude Code are sealed too: they say which hooks run
}

// artifactFiles are the files of an artifact that a verdict hangs on.
var artifactFiles = []string{artifact.ManifestFile, artifact.ModelFile, artifact.FeaturesFile, artifact.EncoderFile, artifact.CalibrationFile}

// SealArtifact adds the files of an artifact folder, or the tar, to those that are
// sealed.
func (c *Contained) SealArtifact(path string) {
	c.Sealed = append(c.Sealed, path)
	for _, name := range artifactFiles {
		c.Sealed = append(c.Sealed, filepath.Join(path, name))
	}
}

// claudeRules protect what decides in a settings file of Claude Code whether this
// hook runs and what is asked about. What only grants more is left to the floor.
func claudeRules() []floor.Rule {
	var list []floor.Rule
	for _, path := range []string{
		"hooks", "disableAllHooks", "permissions.deny", "permissions.ask", "permissions.defaultMode", "permissions.disableBypassPermissionsMode",
	} {
		list = append(list, floor.Rule{
			Name: "claude-" + path, Path: path,
			Reason: "which checks stand before your calls is for a person to decide: ask the user to change the settings themselves",
		})
	}
	return list
}

// Layer makes the layer that judges beside the model.
func (c Contained) Layer() (guard.Layer, error) {
	dir := c.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, err
		}
	}
	f, err := floor.Load(cmp.Or(c.Rules, "default"))
	if err != nil {
		return nil, err
	}
	sealed := c.Sealed
	if c.Claude {
		rules := f.Rules()
		rules.Rules = append(claudeRules(), rules.Rules...)
		if f, err = floor.New(rules); err != nil {
			return nil, fmt.Errorf("rules for the settings of Claude Code: %w", err)
		}
		folders := []string{filepath.Join(cmp.Or(os.Getenv("CLAUDE_PROJECT_DIR"), dir), ".claude"), filepath.Join(dir, ".claude")}
		if home, err := os.UserHomeDir(); err == nil {
			folders = append(folders, cmp.Or(os.Getenv("CLAUDE_CONFIG_DIR"), filepath.Join(home, ".claude")))
		}
		for _, folder := range folders {
			sealed = append(sealed, filepath.Join(folder, "settings.json"), filepath.Join(folder, "settings.local.json"))
		}
	}
	return layer.New(layer.Options{Floor: f, Sealed: sealed, Dir: dir})
}
