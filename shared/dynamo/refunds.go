package dynamo

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"paidonce/shared/payment"
)

// refundRequestRow is a refund request. Method, path, body and key are written once and never change.
type refundRequestRow struct {
	envelope
	OrderID   string    `dynamodbav:"order_id"`
	ID        string    `dynamodbav:"id"`
	Gateway   string    `dynamodbav:"gateway"`
	PaymentID string    `dynamodbav:"payment_id"`
	Amount    moneyRow  `dynamodbav:"amount"`
	Reason    string    `dynamodbav:"reason,omitempty"`
	Forced    bool      `dynamodbav:"forced,omitempty"`
	Method    string    `dynamodbav:"method"`
	Path      string    `dynamodbav:"path"`
	Body      []byte    `dynamodbav:"body"`
	CallKey   string    `dynamodbav:"call_key"`
	Status    string    `dynamodbav:"status"`
	RefundID  string    `dynamodbav:"refund_id,omitempty"`
	Refusal   string    `dynamodbav:"refusal,omitempty"`
	KeyUsed   bool      `dynamodbav:"key_used,omitempty"`
	Attempts  int       `dynamodbav:"attempts,omitempty"`
	SentAt    string    `dynamodbav:"sent_at,omitempty"`
	Steps     []stepRow `dynamodbav:"steps,omitempty"`
	NextAt    string    `dynamodbav:"next_at,omitempty"`
	CreatedAt string    `dynamodbav:"created_at"`
	Version   int64     `dynamodbav:"version"`
}

type stepRow struct {
	At   string `dynamodbav:"at"`
	What string `dynamodbav:"what"`
}

func newRefundRequestRow(r payment.RefundRequest) refundRequestRow {
	row := refundRequestRow{
		envelope: envelope{
			key: refundKey(r.OrderID, r.ID), indexKey: refundIndex(r.OrderID, r.ID, r.NextAt), RowVersion: rowVersion, Entity: "REFUND",
		},
		OrderID: r.OrderID, ID: r.ID, Gateway: r.Gateway, PaymentID: r.PaymentID, Amount: moneyRow(r.Amount), Reason: r.Reason,
		Forced: r.Forced, Method: r.Call.Method, Path: r.Call.Path, Body: r.Call.Body, CallKey: r.Call.Key,
		Status: string(r.Status), RefundID: r.RefundID, Refusal: r.Refusal, KeyUsed: r.KeyUsed, Attempts: r.Attempts,
		SentAt: formatTime(r.SentAt), NextAt: formatTime(r.NextAt), CreatedAt: formatTime(r.CreatedAt), Version: r.Version + 1,
	}
	for _, s := range r.Steps {
		row.Steps = append(row.Steps, stepRow{formatTime(s.At), s.What})
	}
	return row
}

func (r refundRequestRow) request() (payment.RefundRequest, error) {
	if err := r.check(); err != nil {
		return payment.RefundRequest{}, err
	}
	var times timeParser
	q := payment.RefundRequest{
		ID: r.ID, OrderID: r.OrderID, Gateway: r.Gateway, PaymentID: r.PaymentID, Amount: payment.Money(r.Amount), Reason: r.Reason,
		Forced: r.Forced, Call: payment.RefundCall{Method: r.Method, Path: r.Path, Body: r.Body, Key: r.CallKey},
		Status: payment.RequestStatus(r.Status), RefundID: r.RefundID, Refusal: r.Refusal, KeyUsed: r.KeyUsed, Attempts: r.Attempts,
		SentAt: times.parse(r.SentAt), NextAt: times.parse(r.NextAt), CreatedAt: times.parse(r.CreatedAt), Version: r.Version,
	}
	for _, s := range r.Steps {
		q.Steps = append(q.Steps, payment.RequestStep{At: times.parse(s.At), What: s.What})
	}
	return q, times.err
}

// RefundRequest reads a refund request. [payment.ErrNotFound] if there is none.
func (s *Store) RefundRequest(ctx context.Context, orderID, id string) (r payment.RefundRequest, err error) {
	defer describe(&err, "read refund request %s of order %s", id, orderID)
	row, err := get[refundRequestRow](ctx, s, refundKey(orderID, id))
	if err != nil {
		return payment.RefundRequest{}, err
	}
	return row.request()
}

// PutRefundRequest writes a refund request that is stored at r.Version, with the next version.
// [payment.ErrRefundChanged] if it is not at that version any more. New ones come with [Store.Commit].
func (s *Store) PutRefundRequest(ctx context.Context, r payment.RefundRequest) (err error) {
	defer describe(&err, "write refund request %s of order %s", r.ID, r.OrderID)
	put, err := s.putRefundRequest(r)
	if err != nil {
		return err
	}
	_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName:                 put.Put.TableName,
		Item:                      put.Put.Item,
		ConditionExpression:       put.Put.ConditionExpression,
		ExpressionAttributeValues: put.Put.ExpressionAttributeValues,
	})
	if failed := new(types.ConditionalCheckFailedException); errors.As(err, &failed) {
		return payment.ErrRefundChanged
	}
	return err
}

func (s *Store) putRefundRequest(r payment.RefundRequest) (types.TransactWriteItem, error) {
	row, err := marshal(newRefundRequestRow(r))
	if err != nil {
		return types.TransactWriteItem{}, err
	}
	if r.Version == 0 {
		return s.put(row, "attribute_not_exists(pk)", nil), nil
	}
	return s.put(row, "version = :version AND v <= :layout", item{":version": number(r.Version), ":layout": number(rowVersion)}), nil
}

type callbackRow struct {
	envelope
	PaymentID string `dynamodbav:"payment_id"`
	At        string `dynamodbav:"at"`
}

// RecordCallback keeps a callback of an order. [payment.ErrCallbackSeen] if one about the same payment was kept before.
func (s *Store) RecordCallback(ctx context.Context, orderID string, c payment.Callback) (err error) {
	defer describe(&err, "record callback of payment %s of order %s", c.PaymentID, orderID)
	_, err = s.create(ctx, callbackRow{
		envelope:  envelope{key: callbackKey(orderID, c.PaymentID), RowVersion: rowVersion, Entity: "CALLBACK"},
		PaymentID: c.PaymentID, At: formatTime(c.At),
	})
	if errors.Is(err, errRowExists) {
		return payment.ErrCallbackSeen
	}
	return err
}

func (r callbackRow) callback() (payment.Callback, error) {
	var times timeParser
	c := payment.Callback{PaymentID: r.PaymentID, At: times.parse(r.At)}
	return c, times.err
}

// refundChanged is what it means that a refund request is not at the version it was read at.
func refundChanged(item) error { return payment.ErrRefundChanged }
