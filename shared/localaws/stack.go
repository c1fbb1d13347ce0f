package localaws

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Options say what to start. The zero value is a good start.
type Options struct {
	Checkout  string // folder of template.yaml; default: found from the working directory
	StackName string // default "paidonce-local"

	// Ports of 127.0.0.1. 0 takes a free one.
	APIPort, AWSPort int

	// Parameters of template.yaml by name, over their defaults. Architecture is
	// always this machine's.
	Parameters map[string]string

	// Secrets to deploy with. Default: made up.
	Secrets Secrets

	// EnforceIAM refuses unsigned calls of the AWS_IAM routes, as AWS does.
	// Otherwise a plain curl does. The signature itself is never verified.
	EnforceIAM bool

	// Log gets the output of SAM, the engine and the functions, from several
	// goroutines at once. Default: appended to .local/emulator.log.
	Log io.Writer

	// Progress gets one line per step, for a person. Default: none.
	Progress func(string)
}

// Stack is the deployed application on its own engine.
type Stack struct {
	Info
	Engine *Engine
	Proxy  *Proxy // between the engine and all its callers but SAM

	front     *apiFront
	functions map[string]string
}

// Start builds the functions if their sources have changed, starts an engine,
// deploys template.yaml to it and returns when the API answers. Close ends it.
func Start(ctx context.Context, opts Options) (_ *Stack, err error) {
	checkout, err := FindCheckout(opts.Checkout)
	if err != nil {
		return nil, err
	}
	opts.StackName = firstNonEmpty(opts.StackName, "paidonce-local")
	if opts.Secrets == (Secrets{}) {
		opts.Secrets = newSecrets()
	}
	if opts.Log == nil {
		log, err := openLog(checkout)
		if err != nil {
			return nil, err
		}
		defer log.Close() // the engine has its own handle
		opts.Log = log
	}
	begin := time.Now()
	step := func(format string, args ...any) {
		if opts.Progress != nil {
			after := time.Since(begin).Round(100 * time.Millisecond)
			opts.Progress(fmt.Sprintf("%6s  %s", after, fmt.Sprintf(format, args...)))
		}
	}

	parsed, err := readTemplate(checkout)
	if err != nil {
		return nil, err
	}
	step("building the functions, if they have changed")
	builtTemplate, err := Build(ctx, checkout, opts.Log)
	if err != nil {
		return nil, err
	}
	step("starting the emulator")

	s := &Stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.Proxy, err = NewProxy(opts.AWSPort); err != nil {
		return nil, err
	}
	s.Engine, err = StartEngine(ctx, EngineOptions{Checkout: checkout, FunctionEndpoint: s.Proxy.URL, Log: opts.Log})
	if err != nil {
		return nil, err
	}
	if err = s.Proxy.Forward(s.Engine.URL); err != nil {
		return nil, err
	}
	if err = createSecrets(ctx, s.Engine.Config(), parsed, opts); err != nil {
		return nil, err
	}
	step("deploying template.yaml")
	deployed, err := deploy(ctx, s.Engine, builtTemplate, opts)
	if err != nil {
		return nil, err
	}
	s.functions = deployed.functions
	if s.front, err = newAPIFront(opts.APIPort, s.Engine.URL, deployed.outputs["ApiId"]); err != nil {
		return nil, err
	}
	s.Info = Info{
		APIURL:                s.front.url,
		AWSEndpoint:           s.Proxy.URL,
		Region:                s.Engine.Region,
		StackName:             opts.StackName,
		Table:                 deployed.outputs["TableName"],
		WebhookSecret:         opts.Secrets.Webhook,
		PreviousWebhookSecret: opts.Secrets.PreviousWebhook,
		KeyID:                 opts.Secrets.KeyID,
		KeySecret:             opts.Secrets.KeySecret,
		AccountID:             parsed.parameter("RazorpayAccountId", opts.Parameters),
		PID:                   os.Getpid(),
	}
	if s.EventsQueueURL, err = through(s.Proxy.URL, deployed.outputs["EventsQueueUrl"]); err != nil {
		return nil, err
	}
	if s.EventsDlqURL, err = through(s.Proxy.URL, deployed.outputs["EventsDlqUrl"]); err != nil {
		return nil, err
	}
	step("ready: %s", s.APIURL)
	return s, nil
}

// Config makes AWS clients that go through the Proxy, as the functions do.
func (s *Stack) Config() aws.Config { return clientConfig(s.AWSEndpoint, s.Region) }

// KillFunction kills the processes that run the function of that logical id
// ("WebhookFunction") at this moment, as a crash would, and returns how many
// they were. The next request gets a new process. Linux only.
func (s *Stack) KillFunction(logicalID string) (int, error) {
	name, found := s.functions[logicalID]
	if !found {
		return 0, fmt.Errorf("localaws: kill %s: no such function; there are %v", logicalID, slices.Sorted(maps.Keys(s.functions)))
	}
	pids, err := functionProcesses(s.Engine.PID(), name)
	if err != nil {
		return 0, fmt.Errorf("localaws: kill %s: %w", logicalID, err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return 0, fmt.Errorf("localaws: kill %s: %w", logicalID, err)
		}
	}
	return len(pids), nil
}

// Close ends the stack. What it held is gone.
func (s *Stack) Close() error {
	var errs []error
	if s.front != nil {
		errs = append(errs, s.front.server.Close())
	}
	if s.Proxy != nil {
		errs = append(errs, s.Proxy.Close())
	}
	if s.Engine != nil {
		errs = append(errs, s.Engine.Close())
	}
	return errors.Join(errs...)
}
