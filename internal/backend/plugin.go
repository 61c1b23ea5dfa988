package backend

import (
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// pathVariable names the folders that hold PJRT plugins. go-xla reads it when the
// process starts.
const pathVariable = "PJRT_PLUGIN_LIBRARY_PATH"

// entryPoint is the symbol that makes a shared library a PJRT plugin.
const entryPoint = "GetPjrtApi"

// pluginFolders returns where plugins are looked for and whether the variable
// says so.
func pluginFolders() (dirs []string, set bool) {
	if v, ok := os.LookupEnv(pathVariable); ok {
		for _, d := range strings.Split(v, ":") {
			if d != "" {
				dirs = append(dirs, d)
			}
		}
		return dirs, true
	}
	const system = "/usr/local/lib/go-xla"
	if home, err := os.UserHomeDir(); err == nil {
		user := filepath.Join(home, ".local", "lib", "go-xla")
		dirs = append(dirs, user, filepath.Join(user, "nvidia"))
	}
	return append(dirs, system, filepath.Join(system, "nvidia")), false
}

// findPlugin returns the plugin file of a kind ("cpu" or "cuda"), or what is
// wrong. It loads nothing, so that it can say more than a loader would: the
// search of go-xla panics on the first file that does not load.
func findPlugin(kind string) (string, error) {
	dirs, set := pluginFolders()
	install := map[string]string{
		"cpu":  "install one with scripts/xla-cpu.sh",
		"cuda": "install one with scripts/xla-cuda.sh",
	}[kind]
	var found string
	var seen []string
	for _, dir := range dirs {
		entries, err := os.ReadDir(dir)
		if err != nil {
			if !set {
				continue // go-xla's own folders need not be there
			}
			return "", fmt.Errorf("%s: %w: %s", pathVariable, err, install)
		}
		for _, e := range entries {
			name := pluginKind(e.Name())
			if name == "" {
				continue
			}
			seen = append(seen, name)
			path := filepath.Join(dir, e.Name())
			if err := checkPlugin(path); err != nil {
				return "", fmt.Errorf("plugin %s: %w: remove it, or %s", path, err, install)
			}
			if found == "" && (name == kind || strings.HasPrefix(name, kind+"_v")) {
				found = path
			}
		}
	}
	switch {
	case found != "":
		return found, nil
	case !set:
		return "", fmt.Errorf("%s is not set, and no plugin is in %s: %s", pathVariable, strings.Join(dirs, ", "), install)
	case len(dirs) == 0:
		return "", fmt.Errorf("%s is empty: %s", pathVariable, install)
	case len(seen) == 0:
		return "", fmt.Errorf("%s: no pjrt_c_api_%s_plugin.so in %s: %s", pathVariable, kind, strings.Join(dirs, ", "), install)
	}
	slices.Sort(seen)
	return "", fmt.Errorf("%s: %s holds the plugins %s, not %s: %s", pathVariable, strings.Join(dirs, ", "),
		strings.Join(slices.Compact(seen), ", "), kind, install)
}

// pluginKind returns what go-xla calls a plugin file: cpu for
// pjrt_c_api_cpu_plugin.so. It is "" for any other file.
func pluginKind(file string) string {
	base, ok := strings.CutSuffix(file, ".so")
	if !ok {
		return ""
	}
	if rest, ok := strings.CutPrefix(base, "pjrt_c_api_"); ok {
		kind, ok := strings.CutSuffix(rest, "_plugin")
		if !ok {
			return ""
		}
		return kind
	}
	for _, prefix := range []string{"pjrt_plugin_", "pjrt-plugin-"} {
		if kind, ok := strings.CutPrefix(base, prefix); ok {
			return kind
		}
	}
	return ""
}

// machines are the ELF machines of the architectures that plugins exist for.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// checkPlugin refuses a file that the dynamic loader would refuse, or that is not
// a plugin. Libraries that it needs in turn are for the loader to find.
func checkPlugin(path string) error {
	if runtime.GOOS != "linux" {
		return nil // no ELF
	}
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("is not a shared library: %w", err)
	}
	defer f.Close()
	if want, ok := machines[runtime.GOARCH]; ok && f.Machine != want {
		return fmt.Errorf("is for %v, and this program for %v", f.Machine, want)
	}
	if f.Type != elf.ET_DYN {
		return fmt.Errorf("is %v, not a shared library", f.Type)
	}
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return fmt.Errorf("has no table of symbols: %w", err)
	}
	if !slices.ContainsFunc(symbols, func(s elf.Symbol) bool { return s.Name == entryPoint && s.Section != elf.SHN_UNDEF }) {
		return fmt.Errorf("is no PJRT plugin: it does not export %s", entryPoint)
	}
	return nil
}
