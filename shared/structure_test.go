// Package shared_test holds the code to the structure that docs/design.md promises: which package may import what, who
// may speak to AWS, how long a main is, what has to be documented.
package shared_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	module = "paidonce"

	awsSDK        = "github.com/aws/aws-sdk-go-v2"
	lambdaEvents  = "github.com/aws/aws-lambda-go/events"
	lambdaContext = "github.com/aws/aws-lambda-go/lambdacontext" // which invocation this is
	lambdaStart   = "github.com/aws/aws-lambda-go/lambda"

	// maxMainLines is how long a function's main.go may be: it wires, and decides nothing.
	maxMainLines = 40
)

// place is what the packages of one row may import beside the standard library, in files that are no tests. Whatever
// lies below an outside path is allowed with it.
type place struct {
	packages string // a pattern of path.Match, below the module
	ours     []string
	outside  []string
	inMain   []string // outside paths that main.go alone may import
	anything bool     // but of the packages below cmd only those of ofCmd
	ofCmd    []string // below cmd/paidonce
}

// places is the table of docs/design.md. A new package needs a row.
var places = []place{
	{packages: "shared/payment"},
	{packages: "shared/advance", ours: []string{"payment"}},
	{packages: "shared/refund", ours: []string{"payment", "advance"}},
	{packages: "shared/reconcile", ours: []string{"payment", "advance"}},
	{packages: "shared/announce", ours: []string{"payment"}},

	// Adapters know one outside thing each, and never each other.
	{packages: "shared/razorpay", ours: []string{"payment"}, outside: []string{"golang.org/x/time/rate"}},
	{packages: "shared/dynamo", ours: []string{"payment"}, outside: []string{awsSDK}},
	{packages: "shared/bus", ours: []string{"payment"}, outside: []string{awsSDK}},
	{packages: "shared/queue", ours: []string{"payment"}, outside: []string{awsSDK}},
	{packages: "shared/apigw", ours: []string{"payment"}, outside: []string{lambdaEvents}},
	{packages: "shared/secret", ours: []string{"payment"}, outside: []string{awsSDK}},
	{packages: "shared/awsclient", ours: []string{"payment"}, outside: []string{awsSDK}},
	{packages: "shared/env", ours: []string{"payment"}, outside: []string{"github.com/caarlos0/env/v11"}},
	{packages: "shared/logs", ours: []string{"payment"}, outside: []string{lambdaContext}},
	{packages: "shared/metrics"},
	{packages: "shared/telemetry", ours: []string{"payment", "logs", "metrics"}},

	// For tests and the command line only.
	{packages: "shared/metrics/metricstest"},
	{packages: "shared/razorpay/razorpaytest", ours: []string{"razorpay", "payment"}},
	{packages: "shared/queue/queuetest", outside: []string{awsSDK}},
	{packages: "shared/storetest", ours: []string{"payment"}, outside: []string{"github.com/google/go-cmp"}},
	{packages: "shared/localaws", outside: []string{awsSDK, "go.yaml.in/yaml/v3"}},

	{
		packages: "functions/*",
		ours:     []string{"payment", "advance", "refund", "reconcile", "announce", "razorpay", "dynamo", "queue", "bus", "apigw", "secret", "awsclient", "env", "logs", "metrics", "telemetry"},
		outside:  []string{lambdaEvents, lambdaContext},
		inMain:   []string{awsSDK, lambdaStart},
	},

	// The command line: the root command knows the commands, they know what is below them, and never each other.
	{packages: "cmd/paidonce", anything: true, ofCmd: []string{"dev", "order", "events", "reconcile", "doctor", "logs", "send", "stack", "terminal"}},
	{packages: "cmd/paidonce/terminal", anything: true},
	{packages: "cmd/paidonce/terminal/terminaltest", anything: true},
	{packages: "cmd/paidonce/stack", anything: true, ofCmd: []string{"terminal"}},
	{packages: "cmd/paidonce/stack/stacktest", anything: true, ofCmd: []string{"stack"}},
	{packages: "cmd/paidonce/view", anything: true, ofCmd: []string{"terminal"}},
	{packages: "cmd/paidonce/*", anything: true, ofCmd: []string{"stack", "terminal", "view"}},
}

// placeOf is the first row that fits.
func placeOf(pkg string) (place, bool) {
	for _, p := range places {
		if ok, _ := path.Match(p.packages, pkg); ok {
			return p, true
		}
	}
	return place{}, false
}

// refuses says why a file of the package may not have the import, or "" if it may.
func (p place) refuses(file, imported string) string {
	ours, isOurs := strings.CutPrefix(imported, module+"/")
	domain, _, _ := strings.Cut(imported, "/")
	ofCmd, isOfCmd := strings.CutPrefix(ours, "cmd/paidonce/")
	outside := p.outside
	if file == "main.go" {
		outside = slices.Concat(p.outside, p.inMain)
	}
	switch {
	case p.anything && isOurs && isOfCmd && !slices.Contains(p.ofCmd, ofCmd):
		return fmt.Sprintf("of the command line it may import only %q", p.ofCmd)
	case p.anything, !isOurs && !strings.Contains(domain, "."): // the standard library
		return ""
	case isOurs && slices.Contains(p.ours, strings.TrimPrefix(ours, "shared/")):
		return ""
	case isOurs:
		return fmt.Sprintf("of ours it may import only %q", p.ours)
	case slices.ContainsFunc(outside, func(o string) bool { return imported == o || strings.HasPrefix(imported, o+"/") }):
		return ""
	}
	return fmt.Sprintf("from outside it may import only %q", outside)
}

// source is a parsed file that is no test.
type source struct {
	name  string
	tree  *ast.File
	lines int
}

func (s source) imports() []string {
	var paths []string
	for _, i := range s.tree.Imports {
		p, err := strconv.Unquote(i.Path.Value)
		if err != nil {
			panic(err) // the parser let it pass
		}
		paths = append(paths, p)
	}
	return paths
}

// packages reads the files of all packages of the module, by the packages' paths below it. Unlike `go list` it sees
// the files for every system.
func packages(t *testing.T) map[string][]source {
	t.Helper()
	root := os.DirFS("..")
	found := map[string][]source{}
	fileSet := token.NewFileSet()
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (base == "testdata" || base[0] == '.' || base[0] == '_'):
			return fs.SkipDir // as the go command does
		case entry.IsDir(), path.Ext(name) != ".go", strings.HasSuffix(name, "_test.go"):
			return nil
		}
		tree, err := parser.ParseFile(fileSet, filepath.Join("..", name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		lines := fileSet.File(tree.FileStart).LineCount()
		found[path.Dir(name)] = append(found[path.Dir(name)], source{base, tree, lines})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found["shared/payment"]) == 0 {
		t.Fatal("package payment is not found")
	}
	return found
}

func TestImports(t *testing.T) {
	for pkg, files := range packages(t) {
		t.Run(pkg, func(t *testing.T) {
			p, ok := placeOf(pkg)
			if !ok {
				t.Fatal("the package has no row in the table of this test: say what it may import")
			}
			for _, f := range files {
				for _, imported := range f.imports() {
					if why := p.refuses(f.name, imported); why != "" {
						t.Errorf("%s imports %s: %s", f.name, imported, why)
					}
				}
			}
		})
	}
}

// impure are the packages of the standard library that reach the world outside, with all below them.
var impure = []string{"os", "net", "log", "syscall", "io/fs", "io/ioutil", "math/rand", "crypto/rand", "plugin"}

// clock are the names of package time that ask the clock or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTicker", "NewTimer"}

// Package payment is a function of its arguments: no clock, no input or output, no chance.
func TestPaymentIsPure(t *testing.T) {
	for _, f := range packages(t)["shared/payment"] {
		for _, imported := range f.imports() {
			for _, root := range impure {
				if imported == root || strings.HasPrefix(imported, root+"/") {
					t.Errorf("%s imports %s", f.name, imported)
				}
			}
		}
		for _, i := range f.tree.Imports {
			if i.Path.Value == `"time"` && i.Name != nil {
				t.Errorf("%s imports time by the name %s, where this test does not see through", f.name, i.Name)
			}
		}
		ast.Inspect(f.tree, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains(clock, s.Sel.Name) {
					t.Errorf("%s uses time.%s", f.name, s.Sel.Name)
				}
			}
			return true
		})
	}
}

func TestMainsAreShort(t *testing.T) {
	for pkg, files := range packages(t) {
		if ok, _ := path.Match("functions/*", pkg); !ok {
			continue
		}
		i := slices.IndexFunc(files, func(f source) bool { return f.name == "main.go" })
		switch {
		case i < 0:
			t.Errorf("%s has no main.go", pkg)
		case files[i].lines > maxMainLines:
			t.Errorf("%s/main.go has %d lines, want at most %d", pkg, files[i].lines, maxMainLines)
		}
	}
}

// bucket are names that say nothing of what a package knows.
var bucket = []string{"util", "utils", "common", "helper", "helpers", "model", "models", "type", "types", "misc", "base"}

func TestPackageNames(t *testing.T) {
	for pkg, files := range packages(t) {
		for _, f := range files {
			if slices.Contains(bucket, path.Base(pkg)) || slices.Contains(bucket, f.tree.Name.Name) {
				t.Errorf("%s: package %s in %s is a bucket, want a name for what it knows", f.name, f.tree.Name, pkg)
			}
		}
	}
}

func TestDocumentation(t *testing.T) {
	for pkg, files := range packages(t) {
		t.Run(pkg, func(t *testing.T) {
			var documented []string
			for _, f := range files {
				if f.tree.Doc != nil {
					documented = append(documented, f.name)
					want := "Package " + f.tree.Name.Name + " "
					if f.tree.Name.Name == "main" {
						want = "Command " + path.Base(pkg) + " "
					}
					if !strings.HasPrefix(f.tree.Doc.Text(), want) {
						t.Errorf("%s: the package comment does not begin with %q", f.name, want)
					}
				}
				for _, name := range undocumented(f.tree) {
					t.Errorf("%s: %s is exported and has no comment that begins with its name", f.name, name)
				}
			}
			if len(documented) != 1 {
				t.Errorf("files with a package comment: %q, want one", documented)
			}
		})
	}
}

// undocumented lists the exported functions, methods of exported types, types, constants and variables without a
// comment. Constants and variables may share the one of their group. What implements error needs none.
func undocumented(file *ast.File) []string {
	var names []string
	need := func(id *ast.Ident, begins bool, comments ...*ast.CommentGroup) {
		if id.IsExported() && !slices.ContainsFunc(comments, func(c *ast.CommentGroup) bool {
			return c != nil && (!begins || beginsWith(c.Text(), id.Name))
		}) {
			names = append(names, id.Name)
		}
	}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			ofError := d.Recv != nil && (d.Name.Name == "Error" || d.Name.Name == "Unwrap")
			if !ofError && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
				need(d.Name, true, d.Doc)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					need(s.Name, true, s.Doc, d.Doc)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						need(id, false, s.Doc, s.Comment, d.Doc)
					}
				}
			}
		}
	}
	return names
}

func beginsWith(text, name string) bool {
	for _, article := range []string{"A ", "An ", "The "} {
		text = strings.TrimPrefix(text, article)
	}
	rest, ok := strings.CutPrefix(text, name)
	return ok && rest != "" && strings.ContainsAny(rest[:1], " ,.:'\n")
}

// receiver is the name of a method's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr: // of a generic type
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return ""
}
