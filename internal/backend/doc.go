// Package backend opens what GoMLX graphs run on: "go", in every build, and
// "xla:cpu" and "xla:cuda", in builds with `-tags xla` and cgo that find a PJRT
// plugin (docs/how-to/accelerators.md).
//
//	be, err := backend.Open(cfg.Backend) // "" is "go"
//	if errors.Is(err, backend.ErrUnavailable) { ... } // the message says why, and what to do
//	exec, err := graph.NewExec(be, build)
//
//	for _, s := range backend.Available() {
//		fmt.Println(s.Name, s.Available, s.Reason)
//	}
//
// A backend is opened once per process and never closed: opening loads a
// library of hundreds of megabytes, which cannot be unloaded.
package backend
