package dynamo

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"sync"
)

// writers keeps compressors between invocations: making one costs more than compressing a webhook's body.
var writers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, gzip.BestSpeed)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

func compress(body []byte) ([]byte, error) {
	if len(body) == 0 {
		return nil, nil
	}
	w := writers.Get().(*gzip.Writer)
	defer writers.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	if _, err := w.Write(body); err != nil {
		return nil, fmt.Errorf("compress body: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("compress body: %w", err)
	}
	return out.Bytes(), nil
}

func decompress(stored []byte) ([]byte, error) {
	if len(stored) == 0 {
		return nil, nil
	}
	r, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil {
		return nil, fmt.Errorf("decompress body: %w", err)
	}
	body, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("decompress body: %w", err)
	}
	return body, nil
}
