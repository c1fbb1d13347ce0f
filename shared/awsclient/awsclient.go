// Package awsclient loads the one configuration that all AWS clients of a function share.
package awsclient

import (
	"context"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
)

// maxAttempts is how often a call is sent at most. More would outlast the caller's patience (Razorpay: 5 seconds),
// and the caller itself comes again.
const maxAttempts = 2

// Config loads region, credentials and endpoint from the environment. AWS_ENDPOINT_URL points every client at an
// emulator. attemptTimeout bounds each attempt of each call.
func Config(ctx context.Context, attemptTimeout time.Duration) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(attemptTimeout)),
		config.WithRetryer(func() aws.Retryer {
			standard := retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = maxAttempts })
			// A single write that meets a running transaction; the SDK does not try it again by itself.
			return retry.AddWithErrorCodes(standard, "TransactionConflictException")
		}),
	)
	if err != nil {
		return aws.Config{}, fmt.Errorf("awsclient: load configuration: %w", err)
	}
	return cfg, nil
}
