package main

import (
	"context"
	"log/slog"
	"slices"

	"github.com/aws/aws-lambda-go/events"

	"paidonce/shared/announce"
	"paidonce/shared/dynamo"
	"paidonce/shared/payment"
)

// announcer publishes announcements; see [announce.Announcer].
type announcer interface {
	Announce(ctx context.Context, keys []payment.OutboxKey) (failed []payment.OutboxKey, err error)
}

type handler struct {
	announcer announcer
	log       *slog.Logger
}

// Handle publishes what the table's stream says was written, and reports the first record that was not: the stream then goes on
// from there (AWS, "Partial batch response"). Marking a row as sent changes the row, which the stream's filter keeps from coming
// here again; nothing else would.
func (h *handler) Handle(ctx context.Context, stream events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	for batch := range slices.Chunk(stream.Records, announce.MaxBatch) {
		if first, err := h.publish(ctx, batch); err != nil {
			h.log.LogAttrs(ctx, slog.LevelError, "not announced", slog.String("error", err.Error()))
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: first})
			return response, nil
		}
	}
	return response, nil
}

// publish publishes one batch. On failure it names the first record that has to come again.
func (h *handler) publish(ctx context.Context, records []events.DynamoDBEventRecord) (first string, err error) {
	var keys []payment.OutboxKey
	at := map[payment.OutboxKey]string{} // the record's place in the stream
	for _, r := range records {
		k, ok := keyOf(r)
		if !ok || r.EventName != string(events.DynamoDBOperationTypeInsert) {
			continue // the filter lets none of these through
		}
		if _, twice := at[k]; !twice {
			keys = append(keys, k)
			at[k] = r.Change.SequenceNumber
		}
	}
	if len(keys) == 0 {
		return "", nil
	}
	failed, err := h.announcer.Announce(ctx, keys)
	for _, k := range keys {
		outcome := "published, or sent before"
		if slices.Contains(failed, k) {
			outcome = "failed"
			if first == "" {
				first = at[k]
			}
		}
		h.log.LogAttrs(ctx, slog.LevelInfo, "announcement", slog.String("order", k.OrderID), slog.String("announcement", k.Name), slog.String("outcome", outcome))
	}
	return first, err
}

func keyOf(r events.DynamoDBEventRecord) (payment.OutboxKey, bool) {
	pk, sk := r.Change.Keys["pk"], r.Change.Keys["sk"]
	if pk.DataType() != events.DataTypeString || sk.DataType() != events.DataTypeString {
		return payment.OutboxKey{}, false
	}
	return dynamo.OutboxKeyOf(pk.String(), sk.String())
}
