package bus_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"paidonce/shared/payment"
)

const schemaFile = "../../docs/events.schema.json"

func schema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	s, err := compiler.Compile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// constants are the values of package payment's text constants of a type.
func constants(t *testing.T, typeName string) []string {
	t.Helper()
	files, err := filepath.Glob("../payment/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var values []string
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			named, isNamed := spec.Type.(*ast.Ident)
			literal, isLiteral := spec.Values[0].(*ast.BasicLit)
			if isNamed && isLiteral && named.Name == typeName {
				value, err := strconv.Unquote(literal.Value)
				if err != nil {
					t.Fatal(err)
				}
				values = append(values, value)
			}
			return true
		})
	}
	if len(values) == 0 {
		t.Fatalf("package payment has no constant of type %s", typeName)
	}
	slices.Sort(values)
	return values
}

// every is every announcement that the constants of package payment allow: more than ever comes about.
func every(t *testing.T) []payment.Announcement {
	t.Helper()
	price, part := payment.Money{Amount: payment.MaxAmount, Currency: "INR"}, payment.Money{Amount: 1, Currency: "KWD"}
	effects := []payment.Effect{payment.Fulfilment{Captured: price}}
	for _, status := range constants(t, "Status") {
		status := payment.Status(status)
		if status != payment.Pending && status != payment.Paid { // no order moves to pending, and the fulfilment tells of paid
			effects = append(effects, payment.Notification{Key: string(status), Status: status, Amount: price})
		}
		effects = append(effects, payment.Notification{Key: "refund_request#r1#failed", Status: status, About: "r1", Amount: part})
		for _, state := range constants(t, "RefundStatus") {
			effects = append(effects, payment.Notification{Key: "refund#rfnd_1#" + state, Status: status, About: "rfnd_1", Amount: part})
		}
		for _, reason := range constants(t, "HoldReason") {
			for _, subject := range []string{"", "pay_1"} {
				hold := payment.HoldKey{Reason: payment.HoldReason(reason), Subject: subject}
				effects = append(effects, payment.Notification{Key: fmt.Sprintf("hold#%s#%s", reason, subject), Status: status, Hold: hold, Amount: price})
			}
		}
	}
	var all []payment.Announcement
	for i, e := range effects {
		a, ok := payment.Announce(payment.OutboxKey{OrderID: "razorpay.order_1", Name: fmt.Sprint("OUTBOX#", i)}, e, int64(i+1), at)
		if !ok {
			t.Fatalf("%v tells nothing", e)
		}
		all = append(all, a)
	}
	return all
}

func TestEveryEventIsAsTheSchemaSays(t *testing.T) {
	s, types := schema(t), map[string]bool{}
	all := every(t)
	for _, a := range all {
		types[a.Type] = true
		if err := s.Validate(envelope(t, a)); err != nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
	if diff := cmp.Diff(texts(s.Properties["detail-type"].Enum), slices.Sorted(maps.Keys(types))); diff != "" {
		t.Errorf("the schema's types differ from those that are announced (-schema +announced)\n%s", diff)
	}
	detail := s.Properties["detail"].Ref
	for _, c := range []struct {
		typeName string
		enum     *jsonschema.Enum
	}{{"Status", detail.Properties["status"].Enum}, {"HoldReason", detail.Properties["hold"].Properties["reason"].Enum}} {
		if diff := cmp.Diff(texts(c.enum), constants(t, c.typeName)); diff != "" {
			t.Errorf("%s (-schema +constants)\n%s", c.typeName, diff)
		}
	}
	t.Logf("%d events of %d types", len(all), len(types))
}

func texts(e *jsonschema.Enum) []string {
	var values []string
	for _, v := range e.Values {
		values = append(values, v.(string))
	}
	slices.Sort(values)
	return values
}

// The page for developers of subscribers names all there is, and its example is an event.
func TestTheDocumentationIsComplete(t *testing.T) {
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	s := schema(t)
	detail := s.Properties["detail"].Ref
	fields := slices.Collect(maps.Keys(detail.Properties))
	for _, name := range slices.Concat(texts(s.Properties["detail-type"].Enum), fields) {
		if !strings.Contains(string(text), "\n| `"+name+"` |") {
			t.Errorf("docs/events.md has no row for %s", name)
		}
	}
	for _, name := range slices.Concat(constants(t, "HoldReason"), constants(t, "Status")) {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/events.md does not name %s", name)
		}
	}
	_, rest, _ := strings.Cut(string(text), "```json\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("docs/events.md has no example")
	}
	event, err := jsonschema.UnmarshalJSON(strings.NewReader(example))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(event); err != nil {
		t.Error(err)
	}
}

// What is not an id, an amount or a status has no place in an event, so that nothing personal gets out.
func TestTheSchemaLetsNothingElseIn(t *testing.T) {
	s := schema(t)
	good := func() map[string]any {
		return envelope(t, payment.Announcement{
			Key: payment.OutboxKey{OrderID: "o1", Name: "OUTBOX#hold#dispute#disp_1"}, Type: "order.held", OrderVersion: 2, At: at, Status: payment.Paid,
			Amount: payment.Money{Amount: 1, Currency: "INR"}, Hold: payment.HoldKey{Reason: payment.HoldDispute, Subject: "disp_1"},
		})
	}
	if err := s.Validate(good()); err != nil {
		t.Fatal(err)
	}
	detail := func(e map[string]any) map[string]any { return e["detail"].(map[string]any) }
	for name, spoil := range map[string]func(map[string]any){
		"another field":               func(e map[string]any) { detail(e)["email"] = "a@example.com" },
		"another field of the hold":   func(e map[string]any) { detail(e)["hold"].(map[string]any)["detail"] = "words" },
		"words for an id":             func(e map[string]any) { detail(e)["order"] = "Mrs Smith" },
		"words for a subject":         func(e map[string]any) { detail(e)["hold"].(map[string]any)["subject"] = "Mrs Smith" },
		"another status":              func(e map[string]any) { detail(e)["status"] = "captured" },
		"another reason":              func(e map[string]any) { detail(e)["hold"].(map[string]any)["reason"] = "tired" },
		"an amount with a fraction":   func(e map[string]any) { detail(e)["amount"] = 1.5 },
		"an amount as text":           func(e map[string]any) { detail(e)["amount"] = "1" },
		"a currency's symbol":         func(e map[string]any) { detail(e)["currency"] = "₹" },
		"no id":                       func(e map[string]any) { delete(detail(e), "id") },
		"no order version":            func(e map[string]any) { delete(detail(e), "order_version") },
		"another version of the form": func(e map[string]any) { detail(e)["version"] = 2 },
		"no hold":                     func(e map[string]any) { delete(detail(e), "hold") },
		"a refund with a hold":        func(e map[string]any) { detail(e)["refund"] = "rfnd_1" },
		"a time without a zone":       func(e map[string]any) { detail(e)["at"] = "2026-11-30T10:00:00" },
		"a time of elsewhere":         func(e map[string]any) { detail(e)["at"] = "2026-11-30T10:00:00+05:30" },
		"another type":                func(e map[string]any) { e["detail-type"] = "order.shipped" },
		"a type with a missing field": func(e map[string]any) { e["detail-type"] = "refund.failed" },
		"a type of another status": func(e map[string]any) {
			delete(detail(e), "hold")
			e["detail-type"] = "order.refunded"
		},
		"another source": func(e map[string]any) { e["source"] = "aws.events" },
	} {
		t.Run(name, func(t *testing.T) {
			e := good()
			spoil(e)
			if s.Validate(e) == nil {
				t.Errorf("the schema takes %v", e)
			}
		})
	}
}

var moneyMoves = func() []payment.Fact {
	inr := func(n int64) payment.Money { return payment.Money{Amount: n, Currency: "INR"} }
	return []payment.Fact{
		payment.PaymentFact{ID: "A", GatewayOrderID: "order_1", Status: payment.PaymentCreated, Failed: true, Amount: inr(100)},
		payment.PaymentFact{ID: "A", GatewayOrderID: "order_1", Status: payment.PaymentCaptured, Amount: inr(100)},
		payment.PaymentFact{ID: "B", GatewayOrderID: "order_1", Status: payment.PaymentCaptured, Amount: inr(102)},
		payment.PaymentFact{ID: "C", GatewayOrderID: "order_1", Status: payment.PaymentCaptured, Amount: payment.Money{Amount: 100, Currency: "USD"}},
		payment.PaymentFact{ID: "A", GatewayOrderID: "order_1", Status: payment.PaymentRefunded, Captured: true, Amount: inr(100), AmountRefunded: 100},
		payment.RefundFact{ID: "R", PaymentID: "A", Status: payment.RefundPending, Amount: inr(60)},
		payment.RefundFact{ID: "R", PaymentID: "A", Status: payment.RefundProcessed, Amount: inr(60)},
		payment.RefundFact{ID: "R", PaymentID: "A", Status: payment.RefundFailed, Amount: inr(60)},
		payment.RefundFact{ID: "S", PaymentID: "A", Status: payment.RefundProcessed, Amount: inr(40)},
		payment.DisputeFact{ID: "D", PaymentID: "A", Status: payment.DisputeOpen, Phase: payment.PhaseChargeback, Amount: inr(100)},
		payment.DisputeFact{ID: "D", PaymentID: "A", Status: payment.DisputeWon, Phase: payment.PhaseChargeback, Amount: inr(100)},
		payment.ReservedFact{Request: payment.RefundRequest{ID: "r1", PaymentID: "A", Amount: inr(10), Call: payment.RefundCall{Key: "po_1"}}},
		payment.ReleasedFact{Receipt: "po_1", Why: "refused"},
		payment.ClosedFact{Reason: "stock released", At: at},
	}
}()

// life is an order and what subscribers have been told of it.
type life struct {
	order payment.Order
	told  []payment.Announcement
}

// live applies one more fact.
func (l life) live(f payment.Fact) life {
	out := payment.Apply(l.order, []payment.Fact{f}, payment.Rules{Pace: payment.Pace(time.Minute)}, at)
	if !out.Changed() {
		return l
	}
	l.order, l.told = out.Order, slices.Clone(l.told)
	l.order.Version++
	for _, e := range out.Effects {
		name := "FULFILMENT"
		if n, ok := e.(payment.Notification); ok {
			name = "OUTBOX#" + n.Key
		}
		if a, ok := payment.Announce(payment.OutboxKey{OrderID: l.order.ID, Name: name}, e, l.order.Version, at); ok {
			l.told = append(l.told, a)
		}
	}
	return l
}

// TestOrdersLives leads an order through every sequence of a few facts and asserts what docs/events.md promises subscribers:
// each event is valid, its id is its own, order.paid comes at most once, and of two events the one with the larger order version
// has the later status.
func TestOrdersLives(t *testing.T) {
	const length = 4
	s := schema(t)
	lives, events, types, known := 0, 0, map[string]bool{}, map[string]bool{}
	var lead func(l life, left int)
	lead = func(l life, left int) {
		lives++
		ids, paid := map[string]bool{}, 0
		for i, a := range l.told {
			events++
			types[a.Type] = true
			if ids[a.Key.String()] {
				t.Fatalf("%s is told twice: %v", a.Key, l.told)
			}
			ids[a.Key.String()] = true
			if a.Type == "order.paid" {
				paid++
			}
			if i > 0 {
				before := l.told[i-1]
				if a.OrderVersion == before.OrderVersion && a.Status != before.Status || rank[a.Status] < rank[before.Status] {
					t.Fatalf("at version %d the order is %s, at version %d %s: %v", before.OrderVersion, before.Status, a.OrderVersion, a.Status, l.told)
				}
			}
			if form := fmt.Sprint(a); !known[form] { // most repeat what another life was told
				known[form] = true
				if err := s.Validate(envelope(t, a)); err != nil {
					t.Fatalf("%+v: %v", a, err)
				}
			}
		}
		if paid > 1 {
			t.Fatalf("paid %d times: %v", paid, l.told)
		}
		if left == 0 {
			return
		}
		for _, f := range moneyMoves {
			lead(l.live(f), left-1)
		}
	}
	order := payment.NewOrder("o1", payment.Money{Amount: 100, Currency: "INR"}, "razorpay", payment.Test, at)
	order.GatewayOrderID, order.Version = "order_1", 1
	lead(life{order: order}, length)
	if diff := cmp.Diff(texts(s.Properties["detail-type"].Enum), slices.Sorted(maps.Keys(types))); diff != "" {
		t.Errorf("(-schema +told)\n%s", diff)
	}
	t.Logf("%d lives, %d events, %d of them different: %s", lives, events, len(known), strings.Join(slices.Sorted(maps.Keys(types)), " "))
}

var rank = map[payment.Status]int{payment.Pending: 0, payment.Failed: 1, payment.Paid: 2, payment.PartiallyRefunded: 3, payment.Refunded: 4}
