package dynamo

import (
	"context"
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
	for shard := range shards {
		pages := dynamodb.NewQueryPaginator(s.client, &dynamodb.QueryInput{
			TableName:              &s.table,
			IndexName:              aws.String(indexName),
			KeyConditionExpression: aws.String("gsi_pk = :pk AND gsi_sk < :before"),
			ExpressionAttributeValues: item{
				":pk": text(duePartition(dueEvents[status], shard)), ":before": text(before.UTC().Format(timeFormat)),
			},
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				return err
			}
			for _, i := range page.Items {
				if k, ok := eventOf(i); ok && !found(k) {
					return nil
				}
			}
		}
	}
	return nil
}

// eventOf is the key of the event whose row has these keys. A gateway's name has no #, an event's id may.
func eventOf(i item) (payment.EventKey, bool) {
	pk, ok := i[partitionKey].(*types.AttributeValueMemberS)
	if !ok {
		return payment.EventKey{}, false
	}
	rest, ok := strings.CutPrefix(pk.Value, eventPrefix)
	if !ok {
		return payment.EventKey{}, false
	}
	gateway, id, ok := strings.Cut(rest, "#")
	return payment.EventKey{Gateway: gateway, ID: id}, ok
}
