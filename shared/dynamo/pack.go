package dynamo

import (
	"bytes"
	"cmp"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// maxUnpacked is how many payments, refunds and disputes an order's row shows one by one, as most orders' do. DynamoDB
// charges a write by the kilobyte of the whole row, so an order with more keeps them in one compressed attribute: 80
// payments and 60 refunds take under 3 KB there instead of 25.
const maxUnpacked = 12

// packedEntities are an order's entities by field instead of by entity. What stands together is alike then, and little is
// left of it but the ids, which nothing can compress.
type packedEntities struct {
	Payments columns   `json:"p,omitzero"`
	Refunds  columns   `json:"r,omitzero"`
	Disputes columns   `json:"d,omitzero"`
	Holds    []holdRow `json:"h,omitempty"`
}

// packDictionary is what packed text begins and is strewn with, so that it need not be spelt out in each row. It belongs to
// the layout of rows: what was packed with it cannot be unpacked without.
const packDictionary = `"reversed":[{"amount":{"amount":1000,"currency":"USD"},"told":[["pending","processed","failed"],"voided":[true,` +
	`"conflict":[true,"other_id":["claim":[1000,"h":[{"reason":"refunds_unread","subject":"pay_","since":"2026-01-01T00:00:00.000Z","told":true},` +
	`{"p":{"ids":["pay_","fields":{"amount":[{"amount":10000,"currency":"INR"},{"amount":"booked":[null,null,null,null,null,{"amount":10000,"currency":"INR"},` +
	`"captured":[null,null,null,null,null,{"amount":10000,"currency":"INR"},"created_at":["2026-01-01T00:00:00.000Z","2026-` +
	`"failed":[true,true,true,null,null,null],"pointed":[null,null,true,true,true],"status":["created","created","captured","captured","refunded",` +
	`"]}},"r":{"ids":["rfnd_","fields":{"amount":[{"amount":1000,"currency":"INR"},"booked":[{"amount":1000,"currency":"INR"},"payment_id":["pay_` +
	`"seen":[["processed"],["processed"],["pending","processed"],"told":[["processed"],["processed"],`

// columns are rows by field: the value of field f in the row of id IDs[i] is Fields[f][i]; null, if it has none.
type columns struct {
	IDs    []string                     `json:"ids"`
	Fields map[string][]json.RawMessage `json:"fields"`
}

// pack moves the entities of an order that has many into r.Packed.
func (r *orderRow) pack() (err error) {
	defer describe(&err, "pack order %s", r.ID)
	if len(r.Payments)+len(r.Refunds)+len(r.Disputes) <= maxUnpacked {
		return nil
	}
	packed := packedEntities{Holds: r.Holds}
	if packed.Payments, err = toColumns(r.Payments, func(p paymentRow) string { return p.CreatedAt }); err != nil {
		return err
	}
	ofPayment := func(id string) string { return r.Payments[id].CreatedAt + id } // as the payments stand
	if packed.Refunds, err = toColumns(r.Refunds, func(f refundRow) string { return ofPayment(f.PaymentID) }); err != nil {
		return err
	}
	if packed.Disputes, err = toColumns(r.Disputes, func(d disputeRow) string { return ofPayment(d.PaymentID) }); err != nil {
		return err
	}
	plain, err := json.Marshal(packed)
	if err != nil {
		return err
	}
	var compressed bytes.Buffer
	w, err := flate.NewWriterDict(&compressed, flate.BestCompression, []byte(packDictionary))
	if err != nil {
		return err
	}
	if _, err := w.Write(plain); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	r.Packed, r.orderEntities = compressed.Bytes(), orderEntities{}
	return nil
}

// unpack moves them back.
func (r *orderRow) unpack() (err error) {
	defer describe(&err, "unpack order %s", r.ID)
	if len(r.Packed) == 0 {
		return nil
	}
	plain, err := io.ReadAll(flate.NewReaderDict(bytes.NewReader(r.Packed), []byte(packDictionary)))
	if err != nil {
		return err
	}
	var packed packedEntities
	if err := json.Unmarshal(plain, &packed); err != nil {
		return err
	}
	r.Holds, r.Packed = packed.Holds, nil
	if r.Payments, err = fromColumns[paymentRow](packed.Payments); err != nil {
		return err
	}
	if r.Refunds, err = fromColumns[refundRow](packed.Refunds); err != nil {
		return err
	}
	r.Disputes, err = fromColumns[disputeRow](packed.Disputes)
	return err
}

// toColumns turns rows into columns, in the order of a field in which neighbours are alike, then by id.
func toColumns[R any](rows map[string]R, order func(R) string) (columns, error) {
	c := columns{Fields: map[string][]json.RawMessage{}}
	c.IDs = slices.SortedFunc(maps.Keys(rows), func(a, b string) int {
		return cmp.Or(cmp.Compare(order(rows[a]), order(rows[b])), cmp.Compare(a, b))
	})
	for i, id := range c.IDs {
		text, err := json.Marshal(rows[id])
		if err != nil {
			return columns{}, err
		}
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(text, &fields); err != nil {
			return columns{}, err
		}
		for name, value := range fields {
			if c.Fields[name] == nil {
				c.Fields[name] = make([]json.RawMessage, len(c.IDs))
			}
			c.Fields[name][i] = value
		}
	}
	toSteps(c.Fields[steppedField])
	return c, nil
}

// steppedField is the field whose values are times in rising order.
const steppedField = "created_at"

// toSteps turns times into seconds since the time before. What is no time in whole seconds stays as it is.
func toSteps(column []json.RawMessage) {
	var before int64
	for i, value := range column {
		t, err := time.Parse(`"`+timeFormat+`"`, string(value))
		if err != nil || t.Nanosecond() != 0 {
			continue
		}
		column[i] = strconv.AppendInt(nil, t.Unix()-before, 10)
		before = t.Unix()
	}
}

// fromSteps turns them back.
func fromSteps(column []json.RawMessage) {
	var before int64
	for i, value := range column {
		step, err := strconv.ParseInt(string(value), 10, 64)
		if err != nil {
			continue
		}
		before += step
		column[i] = time.Unix(before, 0).UTC().AppendFormat(nil, `"`+timeFormat+`"`)
	}
}

// fromColumns turns columns back into rows.
func fromColumns[R any](c columns) (map[string]R, error) {
	fromSteps(c.Fields[steppedField])
	rows := map[string]R{}
	for i, id := range c.IDs {
		fields := map[string]json.RawMessage{}
		for name, column := range c.Fields {
			if len(column) != len(c.IDs) {
				return nil, fmt.Errorf("column %s has %d values for %d rows", name, len(column), len(c.IDs))
			}
			if value := column[i]; value != nil && string(value) != "null" {
				fields[name] = value
			}
		}
		text, err := json.Marshal(fields)
		if err != nil {
			return nil, err
		}
		var row R
		if err := json.Unmarshal(text, &row); err != nil {
			return nil, err
		}
		rows[id] = row
	}
	return rows, nil
}
