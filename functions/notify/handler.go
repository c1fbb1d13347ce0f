package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

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

// reserve is the time before the function's own end at which no further batch begins: a timeout would make Lambda repeat all.
const reserve = 5 * time.Second

// Handle publishes what the table's stream says was written, and reports the first record that was not: the stream then comes
// again from there (AWS, "Partial batch response"). What follows a failure is tried all the same, so that one bad record keeps
// nobody waiting; it is not published twice for that, since it is marked. Marking a row as sent changes the row, which the
// stream's filter keeps from coming here again; nothing else would.
func (h *handler) Handle(ctx context.Context, stream events.DynamoDBEvent) (events.DynamoDBEventResponse, error) {
	response := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	for batch := range slices.Chunk(stream.Records, announce.MaxBatch) {
		first, err := batch[0].Change.SequenceNumber, errNoTime
		if timeLeft(ctx) {
			first, err = h.publish(ctx, batch)
		}
		if err == nil {
			continue
		}
		h.log.LogAttrs(ctx, slog.LevelError, "not announced", slog.String("error", err.Error()))
		if len(response.BatchItemFailures) == 0 {
			response.BatchItemFailures = append(response.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: first})
		}
	}
	return response, nil
}

var errNoTime = errors.New("no time left: the stream brings it again")

func timeLeft(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= reserve
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
