package dynamo

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"paidonce/shared/payment"
)

// action is one write of a transaction and what its refusal means.
type action struct {
	write types.TransactWriteItem
	// refused says what it means that the condition failed, given the row that is there (nil: none). A nil answer
	// means that the row is as it should be, so that the action can be dropped.
	refused func(there item) error
}

// Commit writes an order's change in one TransactWriteItems: order, effects, refund request, events, history entry.
//
// It fails with a [*payment.AppliedError] if events are APPLIED already, [payment.ErrVersionConflict] if the order
// is not at c.Order.Version any more or another transaction is writing one of the rows, a [*payment.CorrectionError]
// if the table knows better about a payment, [payment.ErrRefundChanged] if the refund request is not as it was read, and
// [payment.ErrEffectConflict] if an effect's row says something else.
// Nothing is written then. An effect's row that is there with the same content counts as written.
func (s *Store) Commit(ctx context.Context, c payment.Commit) (err error) {
	defer describe(&err, "commit order %s", c.Order.ID)
	actions, err := s.actions(c)
	if err != nil {
		return err
	}
	for {
		err := s.write(ctx, actions)
		cancelled := new(types.TransactionCanceledException)
		if !errors.As(err, &cancelled) {
			return err
		}
		remaining, err := classify(actions, cancelled.CancellationReasons)
		if err != nil {
			return err
		}
		actions = remaining
	}
}

func (s *Store) write(ctx context.Context, actions []action) error {
	// A new input for every attempt: the SDK writes its ClientRequestToken into the one it is given.
	in := &dynamodb.TransactWriteItemsInput{}
	for _, a := range actions {
		in.TransactItems = append(in.TransactItems, a.write)
	}
	_, err := s.client.TransactWriteItems(ctx, in)
	return err
}

// classify decides by position what a cancelled transaction means. It returns the actions that are left to write, or
// the loudest error.
func classify(actions []action, reasons []types.CancellationReason) ([]action, error) {
	if len(reasons) != len(actions) {
		return nil, fmt.Errorf("transaction cancelled with %d reasons for %d actions", len(reasons), len(actions))
	}
	var left []action
	var refusals []error
	for i, reason := range reasons {
		switch code := aws.ToString(reason.Code); code {
		case "", "None":
			left = append(left, actions[i])
		case "ConditionalCheckFailed":
			if err := actions[i].refused(reason.Item); err != nil {
				refusals = append(refusals, err)
			}
		case "TransactionConflict":
			refusals = append(refusals, payment.ErrVersionConflict)
		default: // throttling, a row grown too large: not ours to answer; the code only, since reasons hold items
			refusals = append(refusals, fmt.Errorf("transaction cancelled: %s", code))
		}
	}
	if err := loudest(refusals); err != nil {
		return nil, err
	}
	if len(left) == len(actions) {
		return nil, errors.New("transaction cancelled without a reason")
	}
	return left, nil
}

// loudest is the refusal that decides: applied events before a changed order, that before whatever else is wrong, and
// last what the table knows better.
func loudest(refusals []error) error {
	applied, correction := &payment.AppliedError{}, &payment.CorrectionError{}
	var conflict, other error
	for _, err := range refusals {
		one, better := new(payment.AppliedError), new(payment.CorrectionError)
		switch {
		case errors.As(err, &one):
			applied.Keys = append(applied.Keys, one.Keys...)
		case errors.As(err, &better):
			correction.Facts = append(correction.Facts, better.Facts...)
		case errors.Is(err, payment.ErrVersionConflict):
			conflict = err
		default:
			other = err
		}
	}
	switch {
	case len(applied.Keys) > 0:
		return applied
	case conflict != nil:
		return conflict
	case other != nil:
		return other
	case len(correction.Facts) > 0:
		return correction
	}
	return nil
}

func (s *Store) actions(c payment.Commit) ([]action, error) {
	version := c.Order.Version + 1
	order, err := s.putOrder(c.Order, version)
	if err != nil {
		return nil, err
	}
	actions := []action{order}
	for _, e := range c.Effects {
		a, err := s.putEffect(c.Order, version, e)
		if err != nil {
			return nil, err
		}
		actions = append(actions, a)
	}
	if c.Refund != nil {
		put, err := s.putRefundRequest(*c.Refund)
		if err != nil {
			return nil, err
		}
		actions = append(actions, action{put, refundChanged})
	}
	if c.Change != nil {
		row, err := marshal(newChangeRow(c.Order.ID, version, *c.Change))
		if err != nil {
			return nil, err
		}
		actions = append(actions, action{s.put(row, "attribute_not_exists(pk)", nil), sameRow(nil)})
	}
	for _, st := range c.Events {
		u := settle(st)
		actions = append(actions, action{types.TransactWriteItem{Update: &types.Update{
			TableName:                           &s.table,
			Key:                                 u.key,
			UpdateExpression:                    &u.update,
			ConditionExpression:                 &u.condition,
			ExpressionAttributeNames:            u.names,
			ExpressionAttributeValues:           u.values,
			ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
		}}, func(there item) error {
			if err := settleRefused(there); !errors.Is(err, payment.ErrEventApplied) {
				return err
			}
			return &payment.AppliedError{Keys: []payment.EventKey{st.Key}}
		}})
	}
	return actions, nil
}

func (s *Store) putOrder(o payment.Order, version int64) (action, error) {
	order, err := newOrderRow(o, version)
	if err != nil {
		return action{}, err
	}
	row, err := marshal(order)
	if err != nil {
		return action{}, err
	}
	conflict := func(item) error { return payment.ErrVersionConflict }
	if o.Version == 0 {
		return action{s.put(row, "attribute_not_exists(pk)", nil), conflict}, nil
	}
	condition, values := unchanged(o)
	return action{s.put(row, condition, values), conflict}, nil
}

// unchanged is the condition that the order's row is the one that was read. Its time of creation is part of that: an id
// may be free again after a refusal, and then an order of another request starts at version 1 as well.
func unchanged(o payment.Order) (condition string, values item) {
	return "version = :version AND created_at = :created AND v <= :layout", item{
		":version": number(o.Version), ":created": text(formatTime(o.CreatedAt)), ":layout": number(rowVersion),
	}
}

func (s *Store) putEffect(o payment.Order, version int64, e payment.Effect) (action, error) {
	effect := newEffectRow(o, version, e)
	row, err := marshal(effect)
	if err != nil {
		return action{}, err
	}
	put := func(refused func(item) error) action {
		return action{s.put(row, "attribute_not_exists(pk)", nil), refused}
	}
	switch e := e.(type) {
	case payment.PaymentPointer:
		return put(owned(o.ID, func(owner string) error {
			return &payment.CorrectionError{Facts: []payment.Fact{payment.ForeignPaymentFact{PaymentID: e.PaymentID, OrderID: owner}}}
		})), nil
	case payment.OrderPointer:
		return put(owned(o.ID, func(owner string) error {
			return fmt.Errorf("gateway order belongs to order %s: %w", owner, payment.ErrEffectConflict)
		})), nil
	case payment.CountedAttempt:
		return put(func(item) error {
			return &payment.CorrectionError{Facts: []payment.Fact{payment.CountedAttemptFact(e)}}
		}), nil
	case payment.LedgerEntry:
		return put(sameRow(func(there effectRow) bool {
			return moneyOrZero(there.Amount) == e.Amount && there.PaymentID == e.PaymentID
		})), nil
	}
	return put(sameRow(nil)), nil
}

// owned accepts the pointer that is there if it leads to the order; otherwise says what it means that it leads elsewhere.
func owned(orderID string, elsewhere func(owner string) error) func(item) error {
	return func(there item) error {
		row, err := checked[effectRow](there)
		if err != nil || row.OrderID == orderID {
			return err
		}
		return elsewhere(row.OrderID)
	}
}

// sameRow accepts the row that is there if it says the same; a nil same accepts any, where the key says it all.
func sameRow(same func(effectRow) bool) func(item) error {
	return func(there item) error {
		row, err := checked[effectRow](there)
		if err != nil {
			return err
		}
		if same != nil && !same(row) {
			return fmt.Errorf("%s %s: %w", row.Entity, row.Subject, payment.ErrEffectConflict)
		}
		return nil
	}
}

func (s *Store) put(row item, condition string, values item) types.TransactWriteItem {
	return types.TransactWriteItem{Put: &types.Put{
		TableName:                           &s.table,
		Item:                                row,
		ConditionExpression:                 &condition,
		ExpressionAttributeValues:           values,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}}
}

// settlement is the update of an event row.
type settlement struct {
	key, values       item
	names             map[string]string
	update, condition string
}

// settle turns st into an update of everything but the body, which is written once.
func settle(st payment.Settlement) settlement {
	u := settlement{
		condition: "attribute_exists(pk) AND #status <> :applied AND v <= :layout",
		names:     map[string]string{"#status": "status"},
		key:       item{partitionKey: text(eventKey(st.Key).PK), sortKey: text(eventKey(st.Key).SK)},
		values: item{
			":applied": text(string(payment.EventApplied)), ":layout": number(rowVersion), ":zero": number(0), ":one": number(1),
		},
	}
	sets, removes := []string{"attempts = if_not_exists(attempts, :zero) + :one"}, []string(nil)
	if st.Status == payment.EventApplied || st.Status == payment.EventIgnored {
		sets = append(sets, expiryAttribute+" = if_not_exists(keep_until, :never)") // then it may be dropped, an open one never
		u.values[":never"] = number(never.Unix())
	} else {
		removes = append(removes, expiryAttribute)
	}
	index := eventIndex(st.Status, st.Key, st.OrderID, st.NextAt, st.ReceivedAt)
	for _, a := range []struct {
		name, value string
		stays       bool // what is not known now may have been known before
	}{
		{"#status", string(st.Status), false},
		{"verdict", st.Verdict, false},
		{"kind", st.Type, true},
		{"order_id", st.OrderID, true},
		{"next_at", formatTime(st.NextAt), false},
		{indexPartitionKey, index.PK, false},
		{indexSortKey, index.SK, false},
	} {
		if a.value == "" && a.stays {
			continue
		}
		if a.value == "" {
			removes = append(removes, a.name)
			continue
		}
		placeholder := ":" + strings.TrimPrefix(a.name, "#")
		sets = append(sets, a.name+" = "+placeholder)
		u.values[placeholder] = text(a.value)
	}
	u.update = "SET " + strings.Join(sets, ", ")
	if len(removes) > 0 {
		u.update += " REMOVE " + strings.Join(removes, ", ")
	}
	return u
}

// settleRefused says what stopped a settlement, given the event row that is there.
func settleRefused(there item) error {
	if len(there) == 0 {
		return payment.ErrNotFound
	}
	_, err := checked[envelope](there)
	if err != nil {
		return err
	}
	return payment.ErrEventApplied
}
