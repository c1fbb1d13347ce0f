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
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
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

	// AlarmMinute is how long a minute of an alarm's periods takes: whole seconds
	// that divide a minute. Default: a minute. Alarms that ring when they hear
	// nothing do so only once the stack is as old as what they look back on.
	AlarmMinute time.Duration

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

	options   Options // as they were started with; Update changes the parameters
	front     *apiFront
	watches   []func()          // each stops one
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
	s := &Stack{options: opts}
	log, closeLog, err := opts.openLog()
	if err != nil {
		return nil, err
	}
	defer closeLog() // the engine has its own handle
	step := opts.Progress
	parsed, err := readTemplate(opts.Checkout)
	if err != nil {
		return nil, err
	}

	step("build the functions, if they have changed (the first time: a few minutes)")
	builtTemplate, err := Build(ctx, opts.Checkout, log)
	if err != nil {
		return nil, err
	}

	step("start the emulator")
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	// The proxy comes first: the engine hands its URL to the functions.
	if s.Proxy, err = NewProxy(opts.AWSPort); err != nil {
		return nil, err
	}
	s.Engine, err = StartEngine(ctx, EngineOptions{Checkout: opts.Checkout, FunctionEndpoint: s.Proxy.URL, Log: log})
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
	if err = createBucket(ctx, s.Engine.URL, artifactBucket); err != nil {
		return nil, err
	}
	deployed, err := deploy(ctx, s.Engine, builtTemplate, opts, log)
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
	s.startWatches()
	return s, nil
}

// startWatches starts what looks after the metrics and the alarms.
func (s *Stack) startWatches() {
	client := cloudwatch.NewFromConfig(s.Engine.Config())
	queues := &queueMetrics{engine: s.Engine, client: client}
	alarms := &alarmWatch{client: client, minute: s.options.AlarmMinute, began: time.Now()}
	const often = 2 * time.Second // AWS: every minute; here nobody wants to wait so long
	s.watches = []func(){
		every(min(often, s.options.AlarmMinute/2), queues.publish), // no minute is without a value
		every(min(often, s.options.AlarmMinute), alarms.look),
	}
}

// Update deploys template.yaml and the functions as they are now onto the running stack, as a second `make deploy`
// does, with these parameters over those that the stack has. It returns when the new version serves; the old one does
// until then.
func (s *Stack) Update(ctx context.Context, parameters map[string]string) error {
	opts := s.options
	opts.Parameters = map[string]string{}
	maps.Copy(opts.Parameters, s.options.Parameters)
	maps.Copy(opts.Parameters, parameters)
	log, closeLog, err := opts.openLog()
	if err != nil {
		return err
	}
	defer closeLog()
	builtTemplate, err := Build(ctx, opts.Checkout, log)
	if err != nil {
		return err
	}
	deployed, err := deploy(ctx, s.Engine, builtTemplate, opts, log)
	if err != nil {
		return err
	}
	s.options, s.functions = opts, deployed.functions
	return nil
}

// openLog opens the log that the options name, or the default one.
func (o *Options) openLog() (log io.Writer, closeLog func() error, err error) {
	if o.Log != nil {
		return o.Log, func() error { return nil }, nil
	}
	file, err := openLog(o.Checkout)
	if err != nil {
		return nil, nil, err
	}
	return file, file.Close, nil
}

func (o *Options) setDefaults() (err error) {
	if o.Checkout, err = FindCheckout(o.Checkout); err != nil {
		return err
	}
	o.StackName = firstNonEmpty(o.StackName, "paidonce-local")
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.AlarmMinute == 0 {
		o.AlarmMinute = time.Minute
	}
	if o.AlarmMinute < time.Second || time.Minute%o.AlarmMinute != 0 || o.AlarmMinute%time.Second != 0 {
		return fmt.Errorf("localaws: an alarm's minute of %s: want whole seconds that divide a minute", o.AlarmMinute)
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
		AlarmTopicARN:         outputs["AlarmTopicArn"],
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
	for _, stop := range s.watches {
		stop()
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
