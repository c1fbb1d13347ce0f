package payment_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table in docs/design.md anew")

const designPath = "../../docs/design.md"

// TestDesignTable keeps the table in docs/design.md and the scenarios, which TestScenarios holds against the code, the same.
func TestDesignTable(t *testing.T) {
	const begin, end = "<!-- derivation table -->\n", "<!-- end -->"
	text, err := os.ReadFile(designPath)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	if !ok {
		t.Fatalf("%s has no %q", designPath, begin)
	}
	table, after, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no %q", designPath, end)
	}
	want := designTable()
	if *update {
		if err := os.WriteFile(designPath, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if table != want {
		t.Errorf("the table in %s is not what the code does (run this test with -update and read the change)", designPath)
	}
}

func designTable() string {
	var b strings.Builder
	b.WriteString("| facts | derived | fulfil | holds |\n|---|---|---|---|\n")
	fulfil := map[string]string{"yes": "yes", "no": "no", "early": "no, if not yet"}
	for _, s := range scenarios {
		if s.row {
			told := fulfil[s.fulfil]
			if s.fulfil == "early" && mayFulfilAtOnce(s) {
				told = "yes"
			}
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", s.name, s.derived, told, strings.ReplaceAll(s.holds, ":", " "))
		}
	}
	return b.String()
}
