// Package dynamo keeps events and orders in one DynamoDB table. It is all that knows DynamoDB: keys, rows,
// conditions and what its errors mean.
//
// Every write carries a condition, and every read that comes before a write is consistent. A write that failed may
// have happened all the same; callers read again before they conclude anything from it.
package dynamo

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"paidonce/shared/payment"
)

// client is what the store needs of a *dynamodb.Client.
type client interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	TransactWriteItems(context.Context, *dynamodb.TransactWriteItemsInput, ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// Store is the table. Its methods may be called concurrently.
type Store struct {
	client client
	table  string
}

// New returns the store that keeps its rows in the named table.
func New(c client, table string) *Store { return &Store{c, table} }

// maxStoredBody is the most bytes of compressed body that a row holds. DynamoDB takes 400 KB an item, names included.
const maxStoredBody = 350 << 10

// PutEvent stores e unless an event with its key is there already: then nothing is written and the answer is the
// stored one with [payment.ErrEventExists]. [payment.ErrEventTooLarge] if the compressed body exceeds 350 KiB. It costs no read:
// DynamoDB returns the row that stopped a conditional write (ReturnValuesOnConditionCheckFailure).
func (s *Store) PutEvent(ctx context.Context, e payment.Event) (stored payment.Event, err error) {
	defer describe(&err, "put event %s", e.Key)
	row, err := newEventRow(e)
	if err != nil {
		return payment.Event{}, err
	}
	if len(row.Body) > maxStoredBody {
		return payment.Event{}, payment.ErrEventTooLarge
	}
	old, err := s.create(ctx, row)
	if !errors.Is(err, errRowExists) {
		return payment.Event{}, err
	}
	existing, err := unmarshal[eventRow](old)
	if err != nil {
		return payment.Event{}, err
	}
	if stored, err = existing.event(); err != nil {
		return payment.Event{}, err
	}
	return stored, payment.ErrEventExists
}

// Event reads an event. [payment.ErrNotFound] if there is none.
func (s *Store) Event(ctx context.Context, k payment.EventKey) (e payment.Event, err error) {
	defer describe(&err, "read event %s", k)
	row, err := get[eventRow](ctx, s, eventKey(k))
	if err != nil {
		return payment.Event{}, err
	}
	return row.event()
}

// SettleEvent writes what became of an event and counts the attempt. [payment.ErrEventApplied] if it is APPLIED
// already, [payment.ErrNotFound] if there is none; nothing is written then.
func (s *Store) SettleEvent(ctx context.Context, st payment.Settlement) (err error) {
	defer describe(&err, "settle event %s", st.Key)
	u := settle(st)
	_, err = s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 u.key,
		UpdateExpression:                    &u.update,
		ConditionExpression:                 &u.condition,
		ExpressionAttributeNames:            u.names,
		ExpressionAttributeValues:           u.values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed := new(types.ConditionalCheckFailedException); errors.As(err, &failed) {
		return settleRefused(failed.Item)
	}
	return err
}

// Order reads an order. [payment.ErrNotFound] if there is none.
func (s *Store) Order(ctx context.Context, id string) (o payment.Order, err error) {
	defer describe(&err, "read order %s", id)
	row, err := get[orderRow](ctx, s, orderKey(id))
	if err != nil {
		return payment.Order{}, err
	}
	return row.order()
}

// OrderID says which order of ours a gateway's order or payment belongs to. [payment.ErrNotFound] if none does.
func (s *Store) OrderID(ctx context.Context, gateway string, ref payment.Ref) (id string, err error) {
	defer describe(&err, "find order of %s %s %s", gateway, ref.GatewayOrderID, ref.PaymentID)
	gatewayID := cmp.Or(ref.GatewayOrderID, ref.PaymentID)
	if gatewayID == "" {
		return "", payment.ErrNotFound
	}
	row, err := get[effectRow](ctx, s, pointerKey(gateway, gatewayID))
	if err != nil {
		return "", err
	}
	return row.OrderID, row.check()
}

// CreateOrder stores a new order as version 1. If its id is taken, nothing is written and the answer is the stored
// order with [payment.ErrOrderExists].
func (s *Store) CreateOrder(ctx context.Context, o payment.Order) (stored payment.Order, err error) {
	defer describe(&err, "create order %s", o.ID)
	row, err := newOrderRow(o, 1)
	if err != nil {
		return payment.Order{}, err
	}
	old, err := s.create(ctx, row)
	if errors.Is(err, errRowExists) {
		row, err := unmarshal[orderRow](old)
		if err != nil {
			return payment.Order{}, err
		}
		if stored, err = row.order(); err != nil {
			return payment.Order{}, err
		}
		return stored, payment.ErrOrderExists
	}
	if err != nil {
		return payment.Order{}, err
	}
	o.Version = 1
	return o, nil
}

// DeleteOrder removes an order that the gateway refused to create, so that its id is free again. The order must be as it
// was read and have no gateway order; otherwise [payment.ErrVersionConflict].
func (s *Store) DeleteOrder(ctx context.Context, o payment.Order) (err error) {
	defer describe(&err, "delete order %s", o.ID)
	k, err := marshal(orderKey(o.ID))
	if err != nil {
		return err
	}
	condition, values := unchanged(o)
	_, err = s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
		TableName:                 &s.table,
		Key:                       k,
		ConditionExpression:       aws.String(condition + " AND attribute_not_exists(gateway_order_id)"),
		ExpressionAttributeValues: values,
	})
	if failed := new(types.ConditionalCheckFailedException); errors.As(err, &failed) {
		return payment.ErrVersionConflict
	}
	return err
}

var errRowExists = errors.New("row exists")

// create puts a row where none is. errRowExists comes with the row that is there.
func (s *Store) create(ctx context.Context, row any) (old item, err error) {
	i, err := marshal(row)
	if err != nil {
		return nil, err
	}
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                           &s.table,
		Item:                                i,
		ConditionExpression:                 aws.String("attribute_not_exists(pk)"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	if failed := new(types.ConditionalCheckFailedException); errors.As(err, &failed) {
		return failed.Item, errRowExists
	}
	return nil, err
}

// get reads one row consistently. [payment.ErrNotFound] if there is none.
func get[T any](ctx context.Context, s *Store, k key) (T, error) {
	var none T
	keyItem, err := marshal(k)
	if err != nil {
		return none, err
	}
	out, err := s.client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName:      &s.table,
		Key:            keyItem,
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return none, err
	}
	if len(out.Item) == 0 {
		return none, payment.ErrNotFound
	}
	return unmarshal[T](out.Item)
}

// describe says which operation failed.
func describe(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("dynamo: "+format+": %w", append(args, *err)...)
	}
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}
