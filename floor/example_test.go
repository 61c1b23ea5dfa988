package floor_test

import (
	"fmt"
	"strings"

	"github.com/dreamguard/dreamguard/floor"
)

func ExampleFloor_Check() {
	f := floor.Default()
	for _, c := range []floor.Change{
		floor.Write("limits.maxSteps", 60),
		floor.Write("tools.untrusted.onMutate", "confirm"),
		floor.Write("tools.untrusted.onMutate", "allow"),
		floor.Write(`/tools/providers`, map[string]any{"system": map[string]any{"writeRoots": []string{"~"}}}),
		floor.Document(floor.YAML, []byte("server: {host: 127.0.0.1}"), []byte("server:\n  host: '127.0.0.1'\n  enabled: true\n")),
		floor.Document(floor.YAML, []byte("server: {host: 127.0.0.1}"), []byte("server: {host: 127.0.0.1, HOST: 0.0.0.0}")),
	} {
		d := f.Check(c)
		fmt.Println(strings.TrimSpace(fmt.Sprint(d.Outcome, " ", d.Rule, " ", d.Path)))
	}
	// Output:
	// permit
	// permit
	// refuse untrusted-writes tools.untrusted.onMutate
	// refuse write-roots tools.providers.system.writeRoots
	// permit
	// refuse server-host server.HOST
}
