package dynamo

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"paidonce/shared/payment"
)

// indexName is the table's one index.
const indexName = "index1"

// Effects lists what happened to an order: every effect that is a row of the order's own.
func (s *Store) Effects(ctx context.Context, orderID string) (effects []payment.Effect, err error) {
	defer describe(&err, "read effects of order %s", orderID)
	h, err := s.rowsOf(ctx, orderID)
	for _, e := range h.Effects {
		effects = append(effects, e.Effect)
	}
	return effects, err
}

// History reads everything that is kept about an order beside its own row. Events come by way of the index, which lags a
// little behind the table.
func (s *Store) History(ctx context.Context, orderID string) (h payment.History, err error) {
	defer describe(&err, "read history of order %s", orderID)
	if h, err = s.rowsOf(ctx, orderID); err != nil {
		return payment.History{}, err
	}
	keys, err := s.indexed(ctx, orderPartition(orderID))
	if err != nil {
		return payment.History{}, err
	}
	if h.Events, err = s.eventsWithoutBodies(ctx, keys); err != nil {
		return payment.History{}, err
	}
	failed, err := s.failedOf(ctx, orderID)
	h.Events = append(h.Events, failed...)
	return h, err
}

// maxFailed is how many FAILED events are looked through for an order's. There are a handful, unless everything fails.
const maxFailed = 1000

// failedOf finds the FAILED events of an order among all that are: the index lists those for whoever has to heal them.
func (s *Store) failedOf(ctx context.Context, orderID string) ([]payment.Event, error) {
	var keys []item
	err := s.DueEvents(ctx, payment.EventFailed, never, func(k payment.EventKey) bool {
		keys = append(keys, item{partitionKey: text(eventKey(k).PK), sortKey: text(eventKey(k).SK)})
		return len(keys) < maxFailed
	})
	if err != nil {
		return nil, err
	}
	failed, err := s.eventsWithoutBodies(ctx, keys)
	return slices.DeleteFunc(failed, func(e payment.Event) bool {
		return e.OrderID != orderID || e.Status != payment.EventFailed
	}), err
}

// rowsOf reads the rows of an order's partition.
func (s *Store) rowsOf(ctx context.Context, orderID string) (h payment.History, err error) {
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:                 &s.table,
		ConsistentRead:            aws.Bool(true),
		KeyConditionExpression:    aws.String("pk = :pk"),
		ExpressionAttributeValues: item{":pk": text(orderPartition(orderID))},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return h, err
		}
		for _, i := range page.Items {
			if err := addRow(&h, i); err != nil {
				return h, err
			}
		}
	}
	return h, nil
}

// addRow adds one row of an order's partition to its history.
func addRow(h *payment.History, i item) error {
	sk, _ := i[sortKey].(*types.AttributeValueMemberS)
	switch {
	case sk == nil || sk.Value == orderKey("").SK:
		return nil
	case strings.HasPrefix(sk.Value, changePrefix):
		row, err := checked[changeRow](i)
		if err != nil {
			return err
		}
		c, err := row.change()
		h.Changes = append(h.Changes, c)
		return err
	case strings.HasPrefix(sk.Value, refundPrefix):
		row, err := checked[refundRequestRow](i)
		if err != nil {
			return err
		}
		r, err := row.request()
		h.Refunds = append(h.Refunds, r)
		return err
	case strings.HasPrefix(sk.Value, callbackPrefix):
		row, err := checked[callbackRow](i)
		if err != nil {
			return err
		}
		c, err := row.callback()
		h.Callbacks = append(h.Callbacks, c)
		return err
	}
	row, err := checked[effectRow](i)
	if err != nil {
		return err
	}
	var times timeParser
	if e := row.effect(); e != nil {
		h.Effects = append(h.Effects, payment.DatedEffect{Effect: e, At: times.parse(row.At)})
	}
	return times.err
}

// indexed lists the keys of the rows in a partition of the index.
func (s *Store) indexed(ctx context.Context, partition string) (keys []item, err error) {
	pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
		TableName:                 &s.table,
		IndexName:                 aws.String(indexName),
		KeyConditionExpression:    aws.String("gsi_pk = :pk"),
		ExpressionAttributeValues: item{":pk": text(partition)},
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, i := range page.Items {
			keys = append(keys, item{partitionKey: i[partitionKey], sortKey: i[sortKey]})
		}
	}
	return keys, nil
}

// batchSize is the most keys that one BatchGetItem takes (AWS, BatchGetItem).
const batchSize = 100

// maxRounds is how often keys are asked for that DynamoDB did not get to.
const maxRounds = 6

// pauseBefore waits before a round of a batch read, ever longer: what DynamoDB left over it was too busy for.
func pauseBefore(ctx context.Context, round int) error {
	switch round {
	case 0:
		return nil
	case maxRounds:
		return errors.New("too busy to read all rows")
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(rand.N(50 * time.Millisecond << round)):
		return nil
	}
}

// batch reads the rows wanted, up to batchSize, in any order, and asks again for those that DynamoDB did not get to.
func (s *Store) batch(ctx context.Context, wanted map[string]types.KeysAndAttributes, found func(item) error) error {
	for round := 0; len(wanted) > 0; round++ {
		if err := pauseBefore(ctx, round); err != nil {
			return err
		}
		out, err := s.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: wanted})
		if err != nil {
			return err
		}
		for _, i := range out.Responses[s.table] {
			if err := found(i); err != nil {
				return err
			}
		}
		wanted = out.UnprocessedKeys
	}
	return nil
}

// eventsWithoutBodies reads event rows but for their bodies.
func (s *Store) eventsWithoutBodies(ctx context.Context, keys []item) (events []payment.Event, err error) {
	for len(keys) > 0 {
		n := min(len(keys), batchSize)
		wanted := map[string]types.KeysAndAttributes{s.table: {
			Keys:                     keys[:n],
			ProjectionExpression:     aws.String("v, gateway, event_id, #status, verdict, kind, order_id, sha256, verified_by, #mode, delivery, attempts, received_at"),
			ExpressionAttributeNames: map[string]string{"#status": "status", "#mode": "mode"},
		}}
		keys = keys[n:]
		err := s.batch(ctx, wanted, func(i item) error {
			row, err := unmarshal[eventRow](i)
			if err != nil {
				return err
			}
			e, err := row.event()
			events = append(events, e)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return events, nil
}
