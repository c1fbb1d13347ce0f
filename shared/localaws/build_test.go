package localaws

import (
	"os"
	"path/filepath"
	"testing"
)

// The hash decides whether a build is taken as it is: it follows what goes into
// a function and nothing else.
func TestSourceHash(t *testing.T) {
	write := func(t *testing.T, root, name, text string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name, path string
		changes    bool
	}{
		{"a function", "functions/webhook/main.go", true},
		{"a shared package", "shared/payment/money.go", true},
		{"a new file", "shared/payment/new.go", true},
		{"an embedded file", "shared/payment/currencies.json", true},
		{"the template", "template.yaml", true},
		{"a dependency", "go.sum", true},
		{"the tools", "requirements.txt", true},
		{"a test", "shared/payment/money_test.go", false},
		{"test data", "shared/payment/testdata/case.json", false},
		{"the documentation", "docs/design.md", false},
		{"another program", "cmd/paidonce/main.go", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			for _, name := range []string{"template.yaml", "samconfig.toml", "requirements.txt", "go.mod", "go.sum",
				"functions/webhook/main.go", "shared/payment/money.go"} {
				write(t, root, name, "before")
			}
			before, err := sourceHash(root)
			if err != nil {
				t.Fatal(err)
			}
			write(t, root, test.path, "after")
			after, err := sourceHash(root)
			if err != nil {
				t.Fatal(err)
			}
			if (before != after) != test.changes {
				t.Errorf("hash %s, then %s; want a change: %t", before, after, test.changes)
			}
		})
	}
}
