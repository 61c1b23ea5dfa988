package floor

import "testing"

// What the second parser reads is what the first one reads, in all layouts that
// leave no doubt.
func TestSecondYAML(t *testing.T) {
	for _, text := range []string{
		"server: {host: a, tokenEnv: 'b'}\n",
		"server:\n  host: &h a\nx: {allowFrom: [*h, \"c\"]}\n",
		"b: &b\n  host: a\nserver:\n  <<: *b\n  port: 1\n",
		"---\nwriteRoots: []\n---\nwriteRoots: [1, true, ~, 0x10, 1.5]\n",
		"tools:\n  policy:\n    deny:\n    - |\n      x\n      y\n    - >-\n      a\n      b\n",
		"? server\n: {host: a}\n",
		"server:\r\n  host: a # c\r\n",
	} {
		first, err := Default().document(YAML, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if len(first.second) == 0 {
			t.Errorf("%q: the second parser fails", text)
			continue
		}
		if found := Default().compareReadings(first.views, first.second); len(found) > 0 {
			t.Errorf("%q: %+v", text, found)
		}
	}
}

// Where the two differ, what either of them sees counts.
func TestSecondYAMLCounts(t *testing.T) {
	// An item without content, and then a key at the depth of the item: the key of
	// the map around the list by the specification, the item's for one parser.
	before := "tools:\n  policy:\n    allow:\n    - a\n    deny:\n    - x\n"
	after := "tools:\n  policy:\n    allow:\n    -\n    deny:\n    - x\n"
	f := Default()
	b, err := f.document(YAML, []byte(before))
	if err != nil {
		t.Fatal(err)
	}
	a, err := f.document(YAML, []byte(after))
	if err != nil {
		t.Fatal(err)
	}
	if found := f.compareDocuments(b, a); len(found) > 0 {
		t.Fatalf("the first parser sees it: %+v", found)
	}
	if d := f.Check(Document(YAML, []byte(before), []byte(after))); d.Outcome != Refuse {
		t.Errorf("%+v", d)
	}
}

func TestSecondYAMLFails(t *testing.T) {
	for _, text := range []string{"a: *nothing\n", "a: [\n", "\xff", "{{{{"} {
		if trees := secondYAML([]byte(text)); trees != nil {
			t.Errorf("%q is read", text)
		}
	}
}
