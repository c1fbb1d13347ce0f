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

// OutboxKeyOf is the announcement whose row has these keys, as the table's stream shows them. It reports false for a row of
// another kind.
func OutboxKeyOf(pk, sk string) (payment.OutboxKey, bool) {
	orderID, ok := strings.CutPrefix(pk, orderPrefix)
	return payment.OutboxKey{OrderID: orderID, Name: sk}, ok && (sk == fulfilmentKey || strings.HasPrefix(sk, outboxPrefix))
}

// sentRow is an announcement's row with what sending adds to it.
type sentRow struct {
	effectRow
	SentAt string `dynamodbav:"sent_at,omitempty"`
}

// Unsent reads those of the announcements that are not marked as sent, consistently and in any order. Up to 100 at a time, each
// once (DynamoDB, BatchGetItem).
func (s *Store) Unsent(ctx context.Context, keys []payment.OutboxKey) (unsent []payment.Announcement, err error) {
	defer describe(&err, "read announcements")
	if len(keys) == 0 {
		return nil, nil
	}
	var wanted []item
	for _, k := range keys {
		wanted = append(wanted, item{partitionKey: text(orderPartition(k.OrderID)), sortKey: text(k.Name)})
	}
	request := map[string]types.KeysAndAttributes{s.table: {Keys: wanted, ConsistentRead: aws.Bool(true)}}
	err = s.batch(ctx, request, func(i item) error {
		row, err := checked[sentRow](i)
		if err != nil {
			return err
		}
		a, ok, err := row.announcement()
		if err == nil && ok && row.SentAt == "" {
			unsent = append(unsent, a)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return unsent, nil
}

// announcement reports false for a row that tells subscribers nothing.
func (r sentRow) announcement() (payment.Announcement, bool, error) {
	var times timeParser
	at := times.parse(r.At)
	key := payment.OutboxKey{OrderID: r.OrderID, Name: r.key.SK}
	a, ok := payment.Announce(key, r.effect(), r.OrderVersion, at)
	return a, ok, times.err
}

// MarkSent marks an announcement as sent and takes it off the list of what is due. One that is marked already stays as it is.
func (s *Store) MarkSent(ctx context.Context, k payment.OutboxKey, at time.Time) (err error) {
	defer describe(&err, "mark announcement %s sent", k)
	return s.updateOutbox(ctx, k, "SET sent_at = :at REMOVE gsi_pk, gsi_sk", item{":at": text(formatTime(at))})
}

// PostponeAnnouncement lists an announcement that is not sent as due again from this time.
func (s *Store) PostponeAnnouncement(ctx context.Context, k payment.OutboxKey, at time.Time) (err error) {
	defer describe(&err, "postpone announcement %s", k)
	index := outboxIndex(k.OrderID, at)
	return s.updateOutbox(ctx, k, "SET gsi_pk = :pk, gsi_sk = :sk", item{":pk": text(index.PK), ":sk": text(index.SK)})
}

// updateOutbox changes an announcement's row that is there and not sent; any other is as it should be.
func (s *Store) updateOutbox(ctx context.Context, k payment.OutboxKey, update string, values item) error {
	values[":layout"] = number(rowVersion)
	_, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName:                 &s.table,
		Key:                       item{partitionKey: text(orderPartition(k.OrderID)), sortKey: text(k.Name)},
		UpdateExpression:          &update,
		ConditionExpression:       aws.String("attribute_exists(pk) AND attribute_not_exists(sent_at) AND v <= :layout"),
		ExpressionAttributeValues: values,
	})
	if failed := new(types.ConditionalCheckFailedException); errors.As(err, &failed) {
		return nil
	}
	return err
}

// DueAnnouncements calls found with each announcement that was written, or postponed to, before the time and is not sent, like
// [Store.DueEvents].
func (s *Store) DueAnnouncements(ctx context.Context, before time.Time, found func(payment.OutboxKey) bool) (err error) {
	defer describe(&err, "list announcements")
	return s.due(ctx, dueOutbox, before, func(k key) bool {
		key, ok := OutboxKeyOf(k.PK, k.SK)
		return !ok || found(key)
	})
}
