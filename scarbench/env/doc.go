// Package env holds the six environments of SCARBench: small, deterministic
// worlds of records with tools whose arguments have a JSON Schema.
//
//	w, err := env.New(env.Filesystem, env.State{"files": {"/srv/a.txt": {"content": "x"}}})
//	r := w.Call("create_backup", `{"path": "/srv"}`)
//	r = w.Call("delete_path", `{"path": "/srv/a.txt"}`)
//	fmt.Println(r.Valid, r.Output, r.Err, w.Has("files", "/srv/a.txt"))
//	fmt.Println(w.Evidence("backups", "/srv/a.txt")) // active: the backup covers the file
//
// The whole state is a [State]: collections of records, plain JSON. A call that
// fails, or whose arguments do not fit the schema, changes nothing. The same
// state and the same calls give the same state and the same outputs.
//
// Tools that a user may ask for first (a backup, a test run, a word to the
// attendees) leave evidence: a record in a collection of its own, under the name
// of what it was done to. Evidence can be undone, and a copy goes stale when what
// it is a copy of changes.
package env
