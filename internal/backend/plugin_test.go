package backend

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// library returns a shared library of nothing but a table of symbols.
func library(t *testing.T, machine elf.Machine, kind elf.Type, symbols ...string) []byte {
	t.Helper()
	names := []byte{0}
	table := make([]elf.Sym64, 1) // the first is reserved
	for _, s := range symbols {
		table = append(table, elf.Sym64{Name: uint32(len(names)), Info: elf.ST_INFO(elf.STB_GLOBAL, elf.STT_FUNC), Shndx: 1})
		names = append(append(names, s...), 0)
	}
	var b bytes.Buffer
	put := func(v any) {
		if err := binary.Write(&b, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	const header = 64
	at := uint64(header + len(table)*elf.Sym64Size)
	h := elf.Header64{
		Type: uint16(kind), Machine: uint16(machine), Version: 1, Shoff: at + uint64(len(names)),
		Ehsize: header, Shentsize: 64, Shnum: 3, Shstrndx: 2,
	}
	copy(h.Ident[:], elf.ELFMAG)
	h.Ident[elf.EI_CLASS], h.Ident[elf.EI_DATA], h.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	put(h)
	put(table)
	put(names)
	put(elf.Section64{})
	put(elf.Section64{Type: uint32(elf.SHT_DYNSYM), Off: header, Size: uint64(len(table) * elf.Sym64Size), Link: 2, Entsize: elf.Sym64Size})
	put(elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: at, Size: uint64(len(names))})
	return b.Bytes()
}

func TestFindPlugin(t *testing.T) {
	if runtime.GOOS != "linux" || machines[runtime.GOARCH] == 0 {
		t.Skipf("plugins are checked on linux/amd64 and linux/arm64, not on %s/%s", runtime.GOOS, runtime.GOARCH)
	}
	here, other := machines[runtime.GOARCH], elf.EM_RISCV
	good := library(t, here, elf.ET_DYN, "a", entryPoint)
	const cpu, cuda = "pjrt_c_api_cpu_plugin.so", "pjrt_c_api_cuda_plugin.so"
	for _, c := range []struct {
		name  string
		files map[string][]byte
		want  string // part of the error; "" finds found
		found string
	}{
		{name: "there", files: map[string][]byte{cpu: good, "README.md": []byte("x"), "libc.so": []byte("x")}, found: cpu},
		{name: "with a version", files: map[string][]byte{"pjrt_c_api_cpu_v0.83.1_plugin.so": good}, found: "pjrt_c_api_cpu_v0.83.1_plugin.so"},
		{name: "another form of name", files: map[string][]byte{"pjrt-plugin-cpu.so": good}, found: "pjrt-plugin-cpu.so"},
		{name: "empty folder", want: "no pjrt_c_api_cpu_plugin.so in"},
		{name: "of another kind", files: map[string][]byte{cuda: good}, want: "holds the plugins cuda, not cpu"},
		{name: "not a library", files: map[string][]byte{cpu: []byte("<html>not found</html>")}, want: "is not a shared library"},
		{name: "cut off", files: map[string][]byte{cpu: good[:80]}, want: "is not a shared library"},
		{name: "a program", files: map[string][]byte{cpu: library(t, here, elf.ET_EXEC, entryPoint)}, want: "is ET_EXEC, not a shared library"},
		{name: "another machine", files: map[string][]byte{cpu: library(t, other, elf.ET_DYN, entryPoint)}, want: "is for EM_RISCV, and this program for "},
		{name: "another library", files: map[string][]byte{cpu: library(t, here, elf.ET_DYN, "main")}, want: "does not export GetPjrtApi"},
		{name: "a broken one beside it", files: map[string][]byte{cpu: good, cuda: []byte("x")}, want: cuda + ": is not a shared library"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, b := range c.files {
				if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv(pathVariable, dir+":")
			got, err := findPlugin("cpu")
			if c.want == "" {
				if err != nil || got != filepath.Join(dir, c.found) {
					t.Errorf("got %q, %v; want %s", got, err, c.found)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "scripts/xla-cpu.sh") {
				t.Errorf("got %q, %v; want %q and what to do", got, err, c.want)
			}
		})
	}
}

func TestFindPluginWithoutFolder(t *testing.T) {
	for value, want := range map[string]string{
		"":             "PJRT_PLUGIN_LIBRARY_PATH is empty",
		"/nowhere/xla": "PJRT_PLUGIN_LIBRARY_PATH: open /nowhere/xla",
	} {
		t.Setenv(pathVariable, value)
		if got, err := findPlugin("cpu"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v; want %q", value, got, err, want)
		}
	}
	os.Unsetenv(pathVariable) // Setenv above restores it
	t.Setenv("HOME", t.TempDir())
	if _, err := os.Stat("/usr/local/lib/go-xla"); err == nil {
		t.Skip("this machine has plugins in /usr/local/lib/go-xla")
	}
	if got, err := findPlugin("cpu"); err == nil || !strings.Contains(err.Error(), "PJRT_PLUGIN_LIBRARY_PATH is not set") {
		t.Errorf("unset: got %q, %v", got, err)
	}
}

func TestPluginKind(t *testing.T) {
	for file, want := range map[string]string{
		"pjrt_c_api_cpu_plugin.so":  "cpu",
		"pjrt_c_api_cuda_plugin.so": "cuda",
		"pjrt-plugin-tpu.so":        "tpu",
		"pjrt_plugin_cpu.so":        "cpu",
		"pjrt_c_api_cpu.so":         "",
		"pjrt_c_api_cpu_plugin.txt": "",
		"libcudart.so":              "",
	} {
		if got := pluginKind(file); got != want {
			t.Errorf("pluginKind(%q) = %q, want %q", file, got, want)
		}
	}
}
