package dynamo_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"paidonce/shared/dynamo"
	"paidonce/shared/payment"
)

func TestOutboxKeyOf(t *testing.T) {
	for _, c := range []struct {
		pk, sk string
		want   payment.OutboxKey // none, if it has no name
	}{
		{"ORDER#o1", "FULFILMENT", payment.OutboxKey{OrderID: "o1", Name: "FULFILMENT"}},
		{"ORDER#razorpay.order_1", "OUTBOX#refund#rfnd_1#failed", payment.OutboxKey{OrderID: "razorpay.order_1", Name: "OUTBOX#refund#rfnd_1#failed"}},
		{"ORDER#o1", "ORDER", payment.OutboxKey{}},
		{"ORDER#o1", "LEDGER#pay_1#captured", payment.OutboxKey{}},
		{"ORDER#o1", "FULFILMENTS", payment.OutboxKey{}},
		{"ORDER#o1", "OUTBOX", payment.OutboxKey{}},
		{"EVENT#razorpay#evt_1", "EVENT", payment.OutboxKey{}},
		{"GATEWAY#razorpay#pay_1", "FULFILMENT", payment.OutboxKey{}},
		{"", "", payment.OutboxKey{}},
	} {
		if got, ok := dynamo.OutboxKeyOf(c.pk, c.sk); ok != (c.want.Name != "") || ok && got != c.want {
			t.Errorf("%s/%s is %v, %t", c.pk, c.sk, got, ok)
		}
	}
}

// putRow writes an announcement's row with changes.
func putRow(t *testing.T, client *dynamodb.Client, order string, changes map[string]types.AttributeValue) payment.OutboxKey {
	t.Helper()
	text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
	row := map[string]types.AttributeValue{
		"pk": text("ORDER#" + order), "sk": text("FULFILMENT"), "v": &types.AttributeValueMemberN{Value: "1"}, "entity": text("FULFILMENT"),
		"order_id": text(order), "order_version": &types.AttributeValueMemberN{Value: "2"}, "at": text("2026-11-30T10:00:00.000Z"),
		"gsi_pk": text("DUE#outbox#0"), "gsi_sk": text("2999-01-01T00:00:00.000Z#" + order),
	}
	for name, value := range changes {
		row[name] = value
	}
	name := table
	if _, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &name, Item: row}); err != nil {
		t.Fatal(err)
	}
	return payment.OutboxKey{OrderID: order, Name: "FULFILMENT"}
}

// What this release cannot read it neither drops nor marks: the release that can publishes it.
func TestAnnouncementsThatCannotBeRead(t *testing.T) {
	client := dynamodb.NewFromConfig(engine.Config())
	store := dynamo.New(client, table)
	newer := putRow(t, client, "outbox-newer", map[string]types.AttributeValue{"v": &types.AttributeValueMemberN{Value: "2"}})
	if _, err := store.Unsent(t.Context(), []payment.OutboxKey{newer}); !errors.Is(err, payment.ErrNewerVersion) {
		t.Errorf("a newer row reads as %v", err)
	}
	if err := store.MarkSent(t.Context(), newer, time.Now()); err != nil {
		t.Error(err)
	}
	name := table
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &name, Key: map[string]types.AttributeValue{
		"pk": &types.AttributeValueMemberS{Value: "ORDER#outbox-newer"}, "sk": &types.AttributeValueMemberS{Value: "FULFILMENT"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if out.Item["sent_at"] != nil || out.Item["gsi_pk"] == nil {
		t.Errorf("a newer row was marked as sent: %v", out.Item)
	}
	odd := putRow(t, client, "outbox-odd", map[string]types.AttributeValue{"at": &types.AttributeValueMemberS{Value: "yesterday"}})
	if _, err := store.Unsent(t.Context(), []payment.OutboxKey{odd}); err == nil {
		t.Error("a row without a time is announced")
	}
}

// busy leaves all but one row of the first calls over, as DynamoDB does when a partition is busy.
type busy struct {
	*dynamodb.Client
	calls, left int
}

func (b *busy) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput, options ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	b.calls++
	over := map[string]types.KeysAndAttributes{}
	if b.calls <= b.left {
		asked := in.RequestItems[table]
		rest := asked
		rest.Keys = asked.Keys[1:]
		asked.Keys = asked.Keys[:1]
		over[table] = rest
		in = &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{table: asked}}
	}
	out, err := b.Client.BatchGetItem(ctx, in, options...)
	if err == nil {
		out.UnprocessedKeys = over
	}
	return out, err
}

func TestUnsentReadsWhatABusyTableLeftOver(t *testing.T) {
	client := dynamodb.NewFromConfig(engine.Config())
	keys := []payment.OutboxKey{putRow(t, client, "outbox-busy-1", nil), putRow(t, client, "outbox-busy-2", nil), putRow(t, client, "outbox-busy-3", nil)}
	b := &busy{Client: client, left: 2}
	got, err := dynamo.New(b, table).Unsent(t.Context(), keys)
	if err != nil || len(got) != 3 || b.calls != 3 {
		t.Errorf("read %d of 3 rows in %d calls: %v", len(got), b.calls, err)
	}
	b = &busy{Client: client, left: 100}
	many := keys
	for i := range 30 {
		many = append(many, payment.OutboxKey{OrderID: "outbox-none", Name: "OUTBOX#" + string(rune('a'+i))})
	}
	if got, err := dynamo.New(b, table).Unsent(t.Context(), many); err == nil {
		t.Errorf("a table that stays busy is read as %d rows after %d calls", len(got), b.calls)
	}
}
