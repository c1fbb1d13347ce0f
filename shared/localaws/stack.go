package localaws

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
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

	// Secrets to deploy with. Default: SampleSecrets.
	Secrets Secrets

	// EnforceIAM refuses unsigned calls of the AWS_IAM routes, as AWS does.
	// Otherwise a plain curl does. The signature itself is never verified.
	EnforceIAM bool

	// Log gets the output of SAM, the engine and the functions, from several
	// goroutines at once. Default: appended to .local/emulator.log.
	Log io.Writer

	// Progress is told when each step begins, for a person. Default: nobody is.
	Progress func(string)
}

// Stack is the deployed application on its own engine.
type Stack struct {
	Info
	Engine *Engine
	Proxy  *Proxy // between the engine and all its callers but SAM

	front     *apiFront
	metrics   *queueMetrics
	functions map[string]string // physical name by logical id
}

// Start builds the functions if their sources have changed, starts an engine,
// deploys template.yaml to it and returns when the API answers. Close ends it.
// Errors: ErrToolsMissing; a port that is taken; a failed build or deployment,
// with the end of SAM's output.
func Start(ctx context.Context, opts Options) (_ *Stack, err error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	if opts.Log == nil {
		log, err := openLog(opts.Checkout)
		if err != nil {
			return nil, err
		}
		defer log.Close() // the engine has its own handle
		opts.Log = log
	}
	step := opts.Progress
	parsed, err := readTemplate(opts.Checkout)
	if err != nil {
		return nil, err
	}

	step("build the functions, if they have changed (the first time: a few minutes)")
	builtTemplate, err := Build(ctx, opts.Checkout, opts.Log)
	if err != nil {
		return nil, err
	}

	step("start the emulator")
	s := &Stack{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	// The proxy comes first: the engine hands its URL to the functions.
	if s.Proxy, err = NewProxy(opts.AWSPort); err != nil {
		return nil, err
	}
	s.Engine, err = StartEngine(ctx, EngineOptions{Checkout: opts.Checkout, FunctionEndpoint: s.Proxy.URL, Log: opts.Log})
	if err != nil {
		return nil, err
	}
	if err = s.Proxy.Forward(s.Engine.URL); err != nil {
		return nil, err
	}

	step("deploy template.yaml")
	if err = createSecrets(ctx, s.Engine.Config(), parsed, opts); err != nil {
		return nil, err
	}
	deployed, err := deploy(ctx, s.Engine, builtTemplate, opts)
	if err != nil {
		return nil, err
	}
	s.functions = deployed.functions
	if s.front, err = newAPIFront(opts.APIPort, s.Engine.URL, deployed.outputs["ApiId"]); err != nil {
		return nil, err
	}
	if err = s.fillInfo(opts, parsed, deployed.outputs); err != nil {
		return nil, err
	}
	s.metrics = startQueueMetrics(s.Engine)
	return s, nil
}

func (o *Options) setDefaults() (err error) {
	if o.Checkout, err = FindCheckout(o.Checkout); err != nil {
		return err
	}
	o.StackName = firstNonEmpty(o.StackName, "paidonce-local")
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Secrets == (Secrets{}) {
		o.Secrets = SampleSecrets
	}
	return nil
}

func (s *Stack) fillInfo(opts Options, parsed template, outputs map[string]string) (err error) {
	s.Info = Info{
		APIURL:                s.front.url,
		AWSEndpoint:           s.Proxy.URL,
		Region:                s.Engine.Region,
		StackName:             opts.StackName,
		Table:                 outputs["TableName"],
		WebhookSecret:         opts.Secrets.Webhook,
		PreviousWebhookSecret: opts.Secrets.PreviousWebhook,
		KeyID:                 opts.Secrets.KeyID,
		KeySecret:             opts.Secrets.KeySecret,
		AccountID:             parsed.parameter("RazorpayAccountId", opts.Parameters),
		PID:                   os.Getpid(),
	}
	if s.EventsQueueURL, err = through(s.Proxy.URL, outputs["EventsQueueUrl"]); err != nil {
		return err
	}
	if s.EventsDlqURL, err = through(s.Proxy.URL, outputs["EventsDlqUrl"]); err != nil {
		return err
	}
	s.AsyncDlqURL, err = through(s.Proxy.URL, outputs["AsyncDlqUrl"])
	return err
}

// Config makes AWS clients that go through the Proxy, as the functions do.
func (s *Stack) Config() aws.Config { return clientConfig(s.AWSEndpoint, s.Region) }

// KillFunction kills the processes that run the function of that logical id
// ("WebhookFunction") at this moment, as a crash would, and returns how many
// they were once they are gone. The next request gets a new process. Linux only.
func (s *Stack) KillFunction(logicalID string) (int, error) {
	name, found := s.functions[logicalID]
	if !found {
		return 0, fmt.Errorf("localaws: kill %s: no such function; there are %v", logicalID, slices.Sorted(maps.Keys(s.functions)))
	}
	killed, err := functionProcesses(s.Engine.PID(), name)
	for _, pid := range killed {
		if killErr := syscall.Kill(pid, syscall.SIGKILL); killErr != syscall.ESRCH { // it may have ended by itself
			err = errors.Join(err, killErr)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("localaws: kill %s: %w", logicalID, err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for time.Now().Before(deadline) {
		running, err := functionProcesses(s.Engine.PID(), name)
		if err != nil {
			return 0, fmt.Errorf("localaws: kill %s: %w", logicalID, err)
		}
		stillThere := func(pid int) bool { return slices.Contains(running, pid) }
		if !slices.ContainsFunc(killed, stillThere) {
			return len(killed), nil
		}
		time.Sleep(2 * time.Millisecond)
	}
	return 0, fmt.Errorf("localaws: kill %s: processes %v do not end", logicalID, killed)
}

// Invoke runs the function of that logical id ("ReconcileFunction") once, as its schedule or a person would, and returns
// its answer. A failure of the function is an error.
func (s *Stack) Invoke(ctx context.Context, logicalID string, payload []byte) ([]byte, error) {
	name, found := s.functions[logicalID]
	if !found {
		return nil, fmt.Errorf("localaws: invoke %s: no such function; there are %v", logicalID, slices.Sorted(maps.Keys(s.functions)))
	}
	url := s.Engine.URL + "/2015-03-31/functions/" + name + "/invocations"
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(payload))
	if err != nil {
		return nil, fmt.Errorf("localaws: invoke %s: %w", logicalID, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("localaws: invoke %s: %w", logicalID, err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, fmt.Errorf("localaws: invoke %s: %w", logicalID, err)
	}
	if response.StatusCode != http.StatusOK || response.Header.Get("X-Amz-Function-Error") != "" {
		return nil, fmt.Errorf("localaws: invoke %s: HTTP %d %s", logicalID, response.StatusCode, answer)
	}
	return answer, nil
}

// Close ends the stack. What it held is gone.
func (s *Stack) Close() error {
	var errs []error
	if s.metrics != nil {
		s.metrics.close()
	}
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
