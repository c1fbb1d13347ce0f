package dynamo

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
)

// maxUnpacked is how many payments, refunds and disputes an order's row shows one by one, as most orders' do. DynamoDB
// charges a write by the kilobyte of the whole row, so an order with more keeps them in one compressed attribute: 80
// payments and 60 refunds take about 3 KB there instead of 25.
const maxUnpacked = 12

// pack moves the entities of an order that has many into r.Packed.
func (r *orderRow) pack() error {
	if len(r.Payments)+len(r.Refunds)+len(r.Disputes) <= maxUnpacked {
		return nil
	}
	plain, err := json.Marshal(r.orderEntities)
	if err != nil {
		return fmt.Errorf("pack order %s: %w", r.ID, err)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return fmt.Errorf("pack order %s: %w", r.ID, err)
	}
	if _, err := w.Write(plain); err != nil {
		return fmt.Errorf("pack order %s: %w", r.ID, err)
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("pack order %s: %w", r.ID, err)
	}
	r.Packed, r.orderEntities = packed.Bytes(), orderEntities{}
	return nil
}

// unpack moves them back.
func (r *orderRow) unpack() error {
	if len(r.Packed) == 0 {
		return nil
	}
	plain, err := decompress(r.Packed)
	if err != nil {
		return fmt.Errorf("unpack order %s: %w", r.ID, err)
	}
	if err := json.Unmarshal(plain, &r.orderEntities); err != nil {
		return fmt.Errorf("unpack order %s: %w", r.ID, err)
	}
	r.Packed = nil
	return nil
}
