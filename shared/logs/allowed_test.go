package logs

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What a function logs and nobody may read would be missed only at night.
func TestEveryAttributeThatFunctionsLogIsAllowed(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../../functions/*/*.go", "../telemetry/*.go", "correlate.go", "../reconcile/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("nothing is %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	attribute := regexp.MustCompile(`slog\.(?:String|Int|Int64|Bool|Float64)\("(\w+)"`)
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, match := range attribute.FindAllStringSubmatch(string(text), -1) {
			seen[match[1]] = true
			if !allowed[match[1]] {
				t.Errorf("%s logs %q, which is redacted", file, match[1])
			}
		}
		if regexp.MustCompile(`log\.(Debug|Info|Warn|Error)(Context)?\(`).Match(text) {
			t.Errorf("%s logs pairs of any kind: use LogAttrs", file)
		}
	}
	for name := range allowed {
		if !seen[name] && name != slog.TimeKey && name != slog.LevelKey && name != slog.MessageKey {
			t.Errorf("%q is allowed and never logged", name)
		}
	}
}
