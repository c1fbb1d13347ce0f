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

type cursorRow struct {
	envelope
	Next    string       `dynamodbav:"next"`
	Until   string       `dynamodbav:"until"`
	BeganAt string       `dynamodbav:"began_at"`
	Silent  []unheardRow `dynamodbav:"silent,omitempty"`
	Version int64        `dynamodbav:"version"`
}

type unheardRow struct {
	OrderID   string `dynamodbav:"order_id"`
	PaymentID string `dynamodbav:"payment_id"`
	CreatedAt string `dynamodbav:"created_at"`
}

// Cursor reads how far a scan of the gateway has come. One that never ran has the zero cursor.
func (s *Store) Cursor(ctx context.Context, gateway, scan string) (c payment.Cursor, err error) {
	defer describe(&err, "read cursor %s of %s", scan, gateway)
	row, err := get[cursorRow](ctx, s, cursorKey(gateway, scan))
	switch {
	case errors.Is(err, payment.ErrNotFound):
		return payment.Cursor{}, nil
	case err == nil:
		err = row.check()
	}
	if err != nil {
		return payment.Cursor{}, err
	}
	var times timeParser
	c = payment.Cursor{Next: times.parse(row.Next), Until: times.parse(row.Until), BeganAt: times.parse(row.BeganAt), Version: row.Version}
	for _, u := range row.Silent {
		c.Silent = append(c.Silent, payment.Unheard{OrderID: u.OrderID, PaymentID: u.PaymentID, CreatedAt: times.parse(u.CreatedAt)})
	}
	return c, times.err
}

// PutCursor writes how far a scan has come, where it is stored at c.Version, with the next version. [payment.ErrVersionConflict]
// if somebody else has moved it.
func (s *Store) PutCursor(ctx context.Context, gateway, scan string, c payment.Cursor) (err error) {
	defer describe(&err, "write cursor %s of %s", scan, gateway)
	row := cursorRow{
		envelope: envelope{key: cursorKey(gateway, scan), RowVersion: rowVersion, Entity: "CURSOR"},
		Next:     formatTime(c.Next), Until: formatTime(c.Until), BeganAt: formatTime(c.BeganAt), Version: c.Version + 1,
	}
	for _, u := range c.Silent {
		row.Silent = append(row.Silent, unheardRow{u.OrderID, u.PaymentID, formatTime(u.CreatedAt)})
	}
	i, err := marshal(row)
	if err != nil {
		return err
	}
	condition, values := "attribute_not_exists(pk)", item(nil)
	if c.Version > 0 {
		condition, values = "version = :version AND v <= :layout", item{":version": number(c.Version), ":layout": number(rowVersion)}
	}
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &s.table, Item: i, ConditionExpression: &condition, ExpressionAttributeValues: values,
	})
	if failed := new(types.ConditionalCheckFailedException); errors.As(err, &failed) {
		return payment.ErrVersionConflict
	}
	return err
}

// Lease takes the sweep's lease for the holder until a time, unless somebody else has it for longer than now. It reports false
// then. A holder that dies is waited out.
func (s *Store) Lease(ctx context.Context, holder string, now, until time.Time) (taken bool, err error) {
	defer describe(&err, "take the lease")
	return s.updateLease(ctx, "SET holder = :holder, leased_until = :until, v = :layout, entity = :entity",
		"attribute_not_exists(leased_until) OR leased_until <= :now OR holder = :holder", item{
			":holder": text(holder), ":until": text(formatTime(until)), ":now": text(formatTime(now)), ":layout": number(rowVersion),
			":entity": text("LEASE"),
		})
}

// Release gives the lease back, if the holder still has it.
func (s *Store) Release(ctx context.Context, holder string) (err error) {
	defer describe(&err, "give the lease back")
	_, err = s.updateLease(ctx, "REMOVE leased_until", "holder = :holder", item{":holder": text(holder)})
	return err
}

func (s *Store) updateLease(ctx context.Context, update, condition string, values item) (done bool, err error) {
	k, err := marshal(leaseKey())
	if err != nil {
		return false, err
	}
	_, err = s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &s.table, Key: k, UpdateExpression: &update, ConditionExpression: &condition, ExpressionAttributeValues: values,
	})
	if failed := new(types.ConditionalCheckFailedException); errors.As(err, &failed) {
		return false, nil
	}
	return err == nil, err
}

// Heard reports whether any webhook about the order was settled: it is one query of the index for one key.
func (s *Store) Heard(ctx context.Context, orderID string) (heard bool, err error) {
	defer describe(&err, "look for webhooks about order %s", orderID)
	out, err := s.client.Query(ctx, &dynamodb.QueryInput{
		TableName:                 &s.table,
		IndexName:                 aws.String(indexName),
		KeyConditionExpression:    aws.String("gsi_pk = :pk"),
		ExpressionAttributeValues: item{":pk": text(orderPartition(orderID))},
		Limit:                     aws.Int32(1),
	})
	if err != nil {
		return false, err
	}
	return len(out.Items) > 0, nil
}

// LastFailed is when the latest of the FAILED events was received; zero if there is none.
func (s *Store) LastFailed(ctx context.Context) (last time.Time, err error) {
	defer describe(&err, "look for the latest FAILED event")
	var times timeParser
	for shard := range shards {
		out, err := s.client.Query(ctx, &dynamodb.QueryInput{
			TableName:                 &s.table,
			IndexName:                 aws.String(indexName),
			KeyConditionExpression:    aws.String("gsi_pk = :pk"),
			ExpressionAttributeValues: item{":pk": text(duePartition(dueEvents[payment.EventFailed], shard))},
			ScanIndexForward:          aws.Bool(false),
			Limit:                     aws.Int32(1),
		})
		if err != nil {
			return time.Time{}, err
		}
		for _, i := range out.Items {
			k, err := unmarshal[indexKey](i)
			if err != nil {
				return time.Time{}, err
			}
			received, _, _ := strings.Cut(k.SK, "#")
			if at := times.parse(received); at.After(last) {
				last = at
			}
		}
	}
	return last, times.err
}
