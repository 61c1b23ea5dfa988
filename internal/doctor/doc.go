// Package doctor examines the machine, the build and the files that training and
// embedding depend on, and changes none of them.
//
//	r := doctor.Examine(ctx, doctor.Options{
//		Backends: backend.Names,
//		Probe:    doctor.Child(exe, "doctor", "--probe"),
//		Encoders: []string{"all-MiniLM-L6-v2"},
//	})
//	err := r.WriteText(os.Stdout)
//
// A backend is probed in a process of its own: a plugin that does not fit the
// machine, or a flag in XLA_FLAGS that it does not know, ends the process that
// loads it.
package doctor
