// Package terminaltest runs command lines in tests and compares what they print.
package terminaltest

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// Run runs a command line of the commands.
func Run(t *testing.T, commands []*cobra.Command, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	root := &cobra.Command{Use: "paidonce", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(commands...)
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&errOut)
	err = root.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// Update is the flag -update: what is printed becomes what is wanted.
var Update = flag.Bool("update", false, "write the golden files of this test")

// Golden compares what was printed with a file of the test's testdata.
func Golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *Update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), -update accepts it\n%s", path, diff)
	}
}

// Compacted is JSON without the space between its parts.
func Compacted(t *testing.T, text string) string {
	t.Helper()
	var v json.RawMessage
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	short, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(short)
}
