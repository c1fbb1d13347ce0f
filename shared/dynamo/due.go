package dynamo

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"paidonce/shared/payment"
)

// DueEvents calls found with the key of each event that is listed with the status (RECEIVED, PARKED or FAILED) as due
// before the time, soonest first within each shard, until found returns false. The list lags behind the table: read the
// event before doing anything.
func (s *Store) DueEvents(ctx context.Context, status payment.EventStatus, before time.Time, found func(payment.EventKey) bool) (err error) {
	defer describe(&err, "list %s events", status)
	return s.due(ctx, dueEvents[status], before, func(k key) bool {
		rest, ok := strings.CutPrefix(k.PK, eventPrefix)
		gateway, id, named := strings.Cut(rest, "#") // a gateway's name has no #, an event's id may
		return !ok || !named || found(payment.EventKey{Gateway: gateway, ID: id})
	})
}

// DueOrders calls found with the id of each order that the gateway should be asked about before the time, like [Store.DueEvents].
func (s *Store) DueOrders(ctx context.Context, before time.Time, found func(orderID string) bool) (err error) {
	defer describe(&err, "list orders to ask about")
	return s.due(ctx, dueOrders, before, func(k key) bool {
		id, ok := strings.CutPrefix(k.PK, orderPrefix)
		return !ok || found(id)
	})
}

// DueRefunds calls found with each refund request that should be looked after before the time, like [Store.DueEvents].
func (s *Store) DueRefunds(ctx context.Context, before time.Time, found func(orderID, id string) bool) (err error) {
	defer describe(&err, "list refund requests")
	return s.due(ctx, dueRefunds, before, func(k key) bool {
		orderID, ok := strings.CutPrefix(k.PK, orderPrefix)
		id, named := strings.CutPrefix(k.SK, refundPrefix)
		return !ok || !named || found(orderID, id)
	})
}

// afterAll is later than whatever something is listed with, and still sorts as text.
var afterAll = never.Add(999 * time.Millisecond)

// due lists what is due of one kind, shard by shard, until found returns false.
func (s *Store) due(ctx context.Context, what string, before time.Time, found func(key) bool) error {
	if before.After(afterAll) {
		before = afterAll
	}
	for shard := range shards {
		pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
			TableName:              &s.table,
			IndexName:              aws.String(indexName),
			KeyConditionExpression: aws.String("gsi_pk = :pk AND gsi_sk < :before"),
			ExpressionAttributeValues: item{
				":pk": text(duePartition(what, shard)), ":before": text(before.UTC().Format(timeFormat)),
			},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, i := range page.Items {
				k, err := unmarshal[key](i)
				if err != nil {
					return err
				}
				if !found(k) {
					return nil
				}
			}
		}
	}
	return nil
}

// PostponeOrder changes nothing of an order but when the gateway should be asked about it; zero: never.
// [payment.ErrVersionConflict] if somebody else wrote or postponed the order since it was read.
func (s *Store) PostponeOrder(ctx context.Context, o payment.Order, next time.Time) (err error) {
	defer describe(&err, "postpone order %s", o.ID)
	k, err := marshal(orderKey(o.ID))
	if err != nil {
		return err
	}
	condition, values := unchanged(o)
	if o.DueAt.IsZero() {
		condition += " AND attribute_not_exists(due_at)"
	} else {
		condition += " AND due_at = :was"
		values[":was"] = text(formatTime(o.DueAt))
	}
	update := "REMOVE due_at, gsi_pk, gsi_sk"
	if index := orderIndex(o.ID, next); index.PK != "" {
		update = "SET due_at = :due, gsi_pk = :pk, gsi_sk = :sk"
		values[":due"], values[":pk"], values[":sk"] = text(formatTime(next)), text(index.PK), text(index.SK)
	}
	_, err = s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &s.table,
		Key:                       k,
		UpdateExpression:          &update,
		ConditionExpression:       &condition,
		ExpressionAttributeValues: values,
	})
	if failed := new(types.ConditionalCheckFailedException); errors.As(err, &failed) {
		return payment.ErrVersionConflict
	}
	return err
}
