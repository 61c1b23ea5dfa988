package verdict

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
)

func TestDecisionText(t *testing.T) {
	for d := Pass; d <= Block; d++ {
		b, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var back Decision
		if err := json.Unmarshal(b, &back); err != nil || back != d {
			t.Errorf("%s became %v, %v", b, back, err)
		}
	}
	if _, err := json.Marshal(Decision(7)); err == nil {
		t.Error("a decision that does not exist was written")
	}
	var d Decision
	if err := json.Unmarshal([]byte(`"ALLOW"`), &d); err == nil {
		t.Error("a word that is no decision was read")
	}
	if !(Pass < Hold && Hold < Block) {
		t.Error("stricter decisions must be larger: layers take the maximum")
	}
}

func TestDispositions(t *testing.T) {
	for r, want := range map[Reason]Disposition{
		ReasonHazard: Final, ReasonContained: Final, ReasonRisk: Wait, ReasonRefusals: Wait, ReasonTooLarge: Repairable, ReasonPolicy: Repairable, "unheard of": Final,
	} {
		if got := r.Disposition(); got != want {
			t.Errorf("%s: %s, want %s", r, got, want)
		}
	}
}

// noDelete is a layer that forbids one tool.
type noDelete struct{}

func (noDelete) Name() string { return "no-delete" }
func (noDelete) Judge(_ context.Context, _ SessionView, c Call) (Decision, []Reason, []Call) {
	if c.Tool == "delete_file" {
		return Block, []Reason{ReasonPolicy}, nil
	}
	return Pass, nil, nil
}
func (noDelete) Commit(SessionView, Call, Result) {}

func ExampleLayer() {
	var l Layer = noDelete{}
	d, reasons, _ := l.Judge(context.Background(), nil, Call{Tool: "delete_file"})
	fmt.Println(d, reasons, reasons[0].Disposition())
	// Output: BLOCK [policy] repairable
}
