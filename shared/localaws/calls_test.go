package localaws

import (
	"go/token"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/callgraph"
	"golang.org/x/tools/go/callgraph/rta"
	"golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

const awsSDK = "github.com/aws/aws-sdk-go-v2/"

// optionalFields are fields that some functions never write. What runs only under `x.F != nil` or `range x.F` is then
// left out: an advance settles the events that its steps come from, and a person's call has no event.
var optionalFields = []struct{ pkg, structure, field string }{
	{"paidonce/shared/advance", "Step", "Event"},
	{"paidonce/shared/payment", "Commit", "Events"},
}

// programs holds the functions' programs, whole, as they are built for Lambda.
type programs struct {
	mains    map[string]*ssa.Package // by import path
	optional map[*types.Var]bool
}

// loadPrograms loads all functions together, since most of their code is shared: from source, with the standard library,
// for a callback may lead through any of it.
func loadPrograms(t *testing.T, checkout string, folders []string) programs {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{
		Dir: checkout,
		Env: append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0", "GOFLAGS="+goFlags),
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedDeps |
			packages.NeedTypes | packages.NeedTypesSizes | packages.NeedSyntax | packages.NeedTypesInfo,
	}, folders...)
	if err != nil {
		t.Fatal(err)
	}
	packages.Visit(loaded, nil, func(p *packages.Package) {
		for _, err := range p.Errors {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	program, built := ssautil.AllPackages(loaded, ssa.InstantiateGenerics) // RTA needs generic code instantiated
	program.Build()
	result := programs{map[string]*ssa.Package{}, map[*types.Var]bool{}}
	for _, p := range built {
		result.mains[p.Pkg.Path()] = p
	}
	for _, o := range optionalFields {
		result.optional[fieldNamed(t, program.ImportedPackage(o.pkg), o.structure, o.field)] = true
	}
	return result
}

func fieldNamed(t *testing.T, pkg *ssa.Package, structure, field string) *types.Var {
	t.Helper()
	if pkg == nil || pkg.Type(structure) == nil {
		t.Fatalf("no structure %s for the optional field %s: say what became of it", structure, field)
	}
	found, _, _ := types.LookupFieldOrMethod(pkg.Type(structure).Type(), false, pkg.Pkg, field)
	v, isField := found.(*types.Var)
	if !isField {
		t.Fatalf("no field %s.%s: say what became of it", structure, field)
	}
	return v
}

// operations returns the AWS operations ("dynamodb:PutItem") that the program can call and the parts of transactions
// that it makes ("dynamodb/types.Put"), each with the way there.
//
// A function counts as called wherever reached code names it, so that handlers and callbacks are found at the place that
// hands them over. A call of an interface's method leads to every type that rapid type analysis finds for it; its own
// reachable set is of no use, since by way of reflection it holds every method of every client.
func (p programs) operations(main *ssa.Package) map[string]string {
	roots := []*ssa.Function{main.Func("main"), main.Func("init")}
	graph := rta.Analyze(roots, true).CallGraph
	written := map[*types.Var]bool{}
	for { // what is written in code that an optional field switches on can switch on more
		w := walk{graph: graph, optional: p.optional, written: written, from: map[*ssa.Function]*ssa.Function{}, found: map[string]string{}}
		before := len(written)
		for _, root := range roots {
			w.reach(nil, root)
		}
		for len(w.queue) > 0 {
			next := w.queue[0]
			w.queue = w.queue[1:]
			w.visit(next)
		}
		if len(written) == before {
			return w.found
		}
	}
}

type walk struct {
	graph             *callgraph.Graph
	optional, written map[*types.Var]bool
	queue             []*ssa.Function
	from              map[*ssa.Function]*ssa.Function // who reached it first
	found             map[string]string
}

func (w *walk) reach(from, f *ssa.Function) {
	if operation := sdkOperation(f); operation != "" {
		w.find(operation, from)
		return
	}
	if _, seen := w.from[f]; !seen && !ofTheSDKItself(f) {
		w.from[f] = from
		w.queue = append(w.queue, f)
	}
}

func (w *walk) visit(f *ssa.Function) {
	asleep := w.asleep(f)
	for _, block := range f.Blocks {
		if asleep[block] {
			continue
		}
		for _, instruction := range block.Instrs {
			for _, operand := range instruction.Operands(nil) {
				if named, isFunction := (*operand).(*ssa.Function); isFunction {
					w.reach(f, named)
				}
			}
			switch i := instruction.(type) {
			case *ssa.Alloc:
				if part, isPart := strings.CutPrefix(i.Type().Underlying().(*types.Pointer).Elem().String(), awsSDK+"service/dynamodb/types."); isPart {
					w.find("dynamodb/types."+part, f)
				}
			case *ssa.FieldAddr:
				if field := fieldIn(i); w.optional[field] && slices.ContainsFunc(*i.Referrers(), isNoRead) {
					w.written[field] = true
				}
			}
		}
	}
	node := w.graph.Nodes[f]
	if node == nil {
		return // it calls nothing
	}
	for _, edge := range node.Out {
		if edge.Site != nil && edge.Site.Common().IsInvoke() && !asleep[edge.Site.Block()] {
			w.reach(f, edge.Callee.Func)
		}
	}
}

// find notes the way of first arrival, our own functions only.
func (w *walk) find(what string, at *ssa.Function) {
	if w.found[what] != "" {
		return
	}
	var way []string
	for ; at != nil; at = w.from[at] {
		if name := at.String(); strings.Contains(name, "paidonce/") {
			way = append(way, strings.NewReplacer("paidonce/functions/", "", "paidonce/shared/", "").Replace(name))
		}
	}
	slices.Reverse(way)
	w.found[what] = strings.Join(way, " > ")
}

// asleep returns the blocks that run only if an optional field is set that nobody writes.
func (w *walk) asleep(f *ssa.Function) map[*ssa.BasicBlock]bool {
	blocks := map[*ssa.BasicBlock]bool{}
	for _, block := range f.Blocks {
		branch, isIf := block.Instrs[len(block.Instrs)-1].(*ssa.If)
		if !isIf {
			continue
		}
		field, then := fieldAsked(branch.Cond), block.Succs[0]
		if !w.optional[field] || w.written[field] || len(then.Preds) != 1 {
			continue
		}
		for _, other := range f.Blocks {
			if then.Dominates(other) {
				blocks[other] = true
			}
		}
	}
	return blocks
}

// fieldAsked is F where the condition is `x.F != nil` or `i < len(x.F)`, as ranging over a slice asks.
func fieldAsked(condition ssa.Value) *types.Var {
	c, isBinary := condition.(*ssa.BinOp)
	if !isBinary {
		return nil
	}
	if against, isConstant := c.Y.(*ssa.Const); isConstant && against.IsNil() && c.Op == token.NEQ {
		return fieldIn(c.X)
	}
	if length, isCall := c.Y.(*ssa.Call); isCall && c.Op == token.LSS {
		if builtin, isBuiltin := length.Call.Value.(*ssa.Builtin); isBuiltin && builtin.Name() == "len" {
			return fieldIn(length.Call.Args[0])
		}
	}
	return nil
}

// fieldIn is the field that v is or is read from.
func fieldIn(v ssa.Value) *types.Var {
	switch v := v.(type) {
	case *ssa.UnOp:
		return fieldIn(v.X)
	case *ssa.Field:
		return v.X.Type().Underlying().(*types.Struct).Field(v.Field)
	case *ssa.FieldAddr:
		return v.X.Type().Underlying().(*types.Pointer).Elem().Underlying().(*types.Struct).Field(v.Field)
	}
	return nil
}

func isNoRead(i ssa.Instruction) bool {
	read, isUnary := i.(*ssa.UnOp)
	return !isUnary || read.Op != token.MUL
}

var serviceClient = regexp.MustCompile(`^\*` + regexp.QuoteMeta(awsSDK) + `service/([a-z0-9]+)\.Client$`)

// sdkOperation is "dynamodb:PutItem" for (*dynamodb.Client).PutItem, and "" for what is no operation.
func sdkOperation(f *ssa.Function) string {
	method, isMethod := f.Object().(*types.Func)
	if !isMethod || method.Signature().Recv() == nil {
		return ""
	}
	service := serviceClient.FindStringSubmatch(method.Signature().Recv().Type().String())
	parameters, results := method.Signature().Params(), method.Signature().Results()
	if service == nil || parameters.Len() != 3 || results.Len() != 2 ||
		!strings.HasSuffix(parameters.At(1).Type().String(), "."+method.Name()+"Input") ||
		!strings.HasSuffix(results.At(0).Type().String(), "."+method.Name()+"Output") {
		return ""
	}
	return service[1] + ":" + method.Name()
}

// ofTheSDKItself holds for code whose calls are the SDK's own affair: how it finds credentials, which Lambda puts into
// the environment, and the inside of a client, such as endpoint discovery, which is off. Paginators and waiters are not
// of it: they call what we ask for.
func ofTheSDKItself(f *ssa.Function) bool {
	for f.Parent() != nil { // a closure belongs to what it is in
		f = f.Parent()
	}
	var pkg *types.Package
	receiver := ""
	if object := f.Object(); object != nil {
		pkg = object.Pkg()
		if of := object.(*types.Func).Signature().Recv(); of != nil {
			receiver = of.Type().String()
		}
	} else if f.Pkg != nil {
		pkg = f.Pkg.Pkg
	}
	if pkg == nil {
		return false
	}
	part, isSDK := strings.CutPrefix(pkg.Path(), awsSDK)
	part, _, _ = strings.Cut(part, "/")
	switch {
	case !isSDK:
		return false
	case part == "service":
		return !strings.HasSuffix(receiver, "Paginator") && !strings.HasSuffix(receiver, "Waiter")
	}
	return part == "config" || part == "credentials"
}
