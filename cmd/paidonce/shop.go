package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"paidonce/shared/apigw"
)

// shop is the shop's back end: it calls the application's internal routes, signed with its AWS credentials.
type shop struct {
	url string
	aws aws.Config
}

// createOrder makes an order of so many paise and returns it.
func (s shop) createOrder(ctx context.Context, id string, amount int64) (apigw.Order, error) {
	body, err := json.Marshal(map[string]any{"id": id, "amount": amount, "currency": "INR", "gateway": "razorpay"})
	if err != nil {
		return apigw.Order{}, err
	}
	return s.call(ctx, http.MethodPost, "/orders", body)
}

func (s shop) order(ctx context.Context, id string) (apigw.Order, error) {
	return s.call(ctx, http.MethodGet, "/orders/"+id, nil)
}

func (s shop) call(ctx context.Context, method, path string, body []byte) (apigw.Order, error) {
	var order apigw.Order
	request, err := http.NewRequestWithContext(ctx, method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return order, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if err := s.sign(ctx, request, body); err != nil {
		return order, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return order, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return order, err
	}
	if response.StatusCode >= 300 {
		return order, fmt.Errorf("%s %s answered %d %s", method, path, response.StatusCode, text)
	}
	return order, json.Unmarshal(text, &order)
}

func (s shop) sign(ctx context.Context, r *http.Request, body []byte) error {
	credentials, err := s.aws.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	digest := sha256.Sum256(body)
	return v4.NewSigner().SignHTTP(ctx, credentials, r, hex.EncodeToString(digest[:]), "execute-api", s.aws.Region, time.Now())
}
